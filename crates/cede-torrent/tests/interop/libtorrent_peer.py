"""One libtorrent session with one torrent: role, torrent file or magnet link, folder, TCP, uTP, encryption, and its address.

Prints "complete" once it has everything. Ends with its standard input.
"""

import sys
import threading

import libtorrent as lt

role, what, folder, tcp, utp, encryption, address = sys.argv[1:8]
policy = lt.enc_policy.forced if encryption == "enciphered" else lt.enc_policy.enabled
session = lt.session({
    "listen_interfaces": address,
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "allow_multiple_connections_per_ip": True,
    "enable_outgoing_tcp": tcp == "yes",
    "enable_incoming_tcp": tcp == "yes",
    "enable_outgoing_utp": utp == "yes",
    "enable_incoming_utp": utp == "yes",
    "in_enc_policy": int(policy),
    "out_enc_policy": int(policy),
    "allowed_enc_level": int(lt.enc_level.rc4 if encryption == "enciphered" else lt.enc_level.both),
    "alert_mask": lt.alert.category_t.status_notification,
})
params = lt.parse_magnet_uri(what) if what.startswith("magnet:") else lt.add_torrent_params()
if not what.startswith("magnet:"):
    params.ti = lt.torrent_info(what)
params.save_path = folder
handle = session.add_torrent(params)


def watch():
    while True:
        session.wait_for_alert(1000)
        if any(isinstance(alert, lt.torrent_finished_alert) for alert in session.pop_alerts()):
            print("complete", flush=True)


threading.Thread(target=watch, daemon=True).start()
sys.stdin.read()
