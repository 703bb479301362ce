"""One libtorrent session with one torrent, over uTP alone. Says on standard output what happens, one JSON object a line,
and ends with its standard input.

Arguments: seed|leech, metainfo file, directory of the data, address to listen on, and the peer to connect to ("-": none),
as HOST PORT; the size of the socket's buffers (0: the system's).
"""
import json
import select
import sys

import libtorrent as lt

role, metainfo, directory, listen, host, port, buffer_bytes = sys.argv[1:8]


def say(**event):
    print(json.dumps(event), flush=True)


categories = lt.alert.category_t
bracketed = f"[{listen}]" if ":" in listen else listen
session = lt.session({
    "listen_interfaces": f"{bracketed}:0",
    "enable_incoming_tcp": False,
    "enable_outgoing_tcp": False,
    "enable_incoming_utp": True,
    "enable_outgoing_utp": True,
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "in_enc_policy": 2,
    "out_enc_policy": 2,
    "allow_multiple_connections_per_ip": True,
    "rate_limit_ip_overhead": False,
    # Where a connection was given up, the next need not wait for a minute.
    "min_reconnect_time": 2,
    "recv_socket_buffer_size": int(buffer_bytes),
    "send_socket_buffer_size": int(buffer_bytes),
    "alert_mask": categories.status_notification | categories.error_notification | categories.connect_notification
    | categories.peer_notification,
})
parameters = lt.add_torrent_params()
parameters.ti = lt.torrent_info(metainfo)
parameters.save_path = directory
flags = lt.torrent_flags
parameters.flags &= ~(flags.auto_managed | flags.paused)
if role == "seed":
    parameters.flags |= flags.seed_mode
handle = session.add_torrent(parameters)
say(event="version", version=lt.version)

done = connected = False
while not select.select([sys.stdin], [], [], 0.05)[0]:
    for alert in session.pop_alerts():
        name = type(alert).__name__
        if name == "listen_succeeded_alert" and "[uTP]" in alert.message():
            say(event="listening", port=alert.port)
            if host != "-" and not connected:
                connected = True
                handle.connect_peer((host, int(port)))
        elif name in ("peer_disconnected_alert", "peer_error_alert", "listen_failed_alert", "torrent_error_alert",
                      "peer_connect_alert", "incoming_connection_alert"):
            say(event="note", what=f"{name}: {alert.message()}")
    status = handle.status()
    if status.is_seeding and not done and role == "leech":
        done = True
        say(event="complete")
