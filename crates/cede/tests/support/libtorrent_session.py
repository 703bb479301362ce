"""One libtorrent session: torrent files or magnet links with commas between, folder, and whom it calls: a peer, "near" for those of the
local network, "dht/HOST/PORT" for those that the hash table knows, which has a node there, or "none", and then it hardly takes and gives
anything; its port, where that is not 6881; "tcp" or "utp", where it has one alone.

Says "ready" once it takes up calls, each peer once it is connected to it and once it is "gone", "quarter" once it has so much of everything,
and "complete" once it has all. Ends with its standard input.
"""

import sys
import threading
import time

import libtorrent as lt

what, folder, peer, port, transport = (sys.argv[1:] + ["6881", "both"][len(sys.argv) - 4:])[:5]
node = peer.split("/")[1:] if peer.startswith("dht/") else None
session = lt.session({
    "listen_interfaces": f"0.0.0.0:{port},[::]:{port}" if node or peer.startswith("[") else f"0.0.0.0:{port}",
    "enable_dht": node is not None,
    "dht_bootstrap_nodes": "",
    # Nodes whose ids do not follow from their addresses (BEP 42) are refused.
    "dht_enforce_node_id": True,
    "enable_lsd": peer == "near",
    "enable_upnp": False,
    "enable_natpmp": False,
    "active_downloads": -1,
    "active_seeds": -1,
    "active_limit": 100,
    "enable_outgoing_tcp": transport != "utp",
    "enable_incoming_tcp": transport != "utp",
    "enable_outgoing_utp": transport != "tcp",
    "enable_incoming_utp": transport != "tcp",
})


def add(torrent):
    params = lt.parse_magnet_uri(torrent) if torrent.startswith("magnet:") else lt.add_torrent_params()
    if not torrent.startswith("magnet:"):
        params.ti = lt.torrent_info(torrent)
    params.save_path = folder
    if peer == "none":
        params.download_limit = params.upload_limit = 1000
    return session.add_torrent(params)


handles = [add(torrent) for torrent in what.split(",")]


def watch():
    said, peers = set(), set()

    def tell(word, is_so):
        if is_so and word not in said:
            said.add(word)
            print(word, flush=True)

    while True:
        for handle in handles:
            if node and not handle.get_peer_info():
                session.add_dht_node((node[0], int(node[1])))
                handle.force_dht_announce()
            elif ":" in peer and not handle.get_peer_info():
                host, at = peer.rsplit(":", 1)
                handle.connect_peer((host.strip("[]"), int(at)))
        begun = lt.peer_info.connecting | lt.peer_info.handshake
        infos = [info for handle in handles for info in handle.get_peer_info() if not info.flags & begun]
        statuses = [handle.status() for handle in handles]
        # A torrent is paused at first, and hangs up on whoever calls for it.
        tell("ready", not any(status.flags & lt.torrent_flags.paused for status in statuses))
        # Who has everything parts with who has it, too: that it is complete comes first.
        tell("quarter", all(status.progress >= 0.25 for status in statuses))
        tell("complete", all(status.is_seeding for status in statuses))
        there = {f"{info.ip[0]}:{info.ip[1]}" for info in infos}
        for line in [f"gone {one}" for one in peers - there] + [f"peer {one}" for one in there - peers]:
            print(line, flush=True)
        peers = there
        time.sleep(0.2)


threading.Thread(target=watch, daemon=True).start()
sys.stdin.read()
