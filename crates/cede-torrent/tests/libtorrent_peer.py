"""One libtorrent session with one torrent: role, torrent file or magnet link, folder, transport, encryption, and a peer.

Prints the port that it waits at, then "complete" once it has everything. Ends with its standard input.
"""

import sys
import threading
import time

import libtorrent as lt

role, what, folder, transport, encryption, peer = sys.argv[1:7]
policy = lt.enc_policy.forced if encryption == "enciphered" else lt.enc_policy.disabled
settings = {
    "listen_interfaces": "127.0.0.1:0",
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "allow_multiple_connections_per_ip": True,
    "enable_outgoing_tcp": transport == "tcp",
    "enable_incoming_tcp": transport == "tcp",
    "enable_outgoing_utp": transport == "utp",
    "enable_incoming_utp": transport == "utp",
    "in_enc_policy": int(policy),
    "out_enc_policy": int(policy),
    "allowed_enc_level": int(lt.enc_level.rc4 if encryption == "enciphered" else lt.enc_level.both),
    "alert_mask": 0,
}
session = lt.session(settings)
params = lt.parse_magnet_uri(what) if what.startswith("magnet:") else lt.add_torrent_params()
if not what.startswith("magnet:"):
    params.ti = lt.torrent_info(what)
params.save_path = folder
handle = session.add_torrent(params)
while not session.listen_port():
    time.sleep(0.02)


def ready():
    state = handle.status().state
    return state not in (lt.torrent_status.checking_files, lt.torrent_status.checking_resume_data)


while not ready():
    time.sleep(0.02)
print("port", session.listen_port(), flush=True)


def watch():
    host, _, port = peer.rpartition(":")
    while not handle.status().is_seeding:
        if host:
            handle.connect_peer((host, int(port)))
        for _ in range(10):
            if handle.status().is_seeding:
                break
            time.sleep(0.05)
    print("complete", flush=True)


threading.Thread(target=watch, daemon=True).start()
sys.stdin.read()
