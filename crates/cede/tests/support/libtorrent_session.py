"""One libtorrent session: torrent file, folder, and whom it calls: a peer, "near" for those of the local network, or "none", and
then it hardly takes and gives anything.

Says each peer that it is connected to once, and "complete" once it has everything. Ends with its standard input.
"""

import sys
import threading
import time

import libtorrent as lt

what, folder, peer = sys.argv[1:4]
session = lt.session({
    "listen_interfaces": "0.0.0.0:6881",
    "enable_dht": False,
    "enable_lsd": peer == "near",
    "enable_upnp": False,
    "enable_natpmp": False,
})
params = lt.add_torrent_params()
params.ti = lt.torrent_info(what)
params.save_path = folder
if peer == "none":
    params.download_limit = params.upload_limit = 1000
handle = session.add_torrent(params)


def watch():
    said = set()
    while True:
        status = handle.status()
        if ":" in peer and not handle.get_peer_info():
            host, port = peer.rsplit(":", 1)
            handle.connect_peer((host, int(port)))
        for info in handle.get_peer_info():
            line = f"peer {info.ip[0]}:{info.ip[1]}"
            if not info.flags & (lt.peer_info.connecting | lt.peer_info.handshake) and line not in said:
                said.add(line)
                print(line, flush=True)
        if status.is_seeding and "complete" not in said:
            said.add("complete")
            print("complete", flush=True)
        time.sleep(0.5)


threading.Thread(target=watch, daemon=True).start()
sys.stdin.read()
