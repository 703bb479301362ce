"""A swarm of real libtorrent peers behind shaped uplinks, for docs/swarms.md.

    sudo python3 crates/cede-lab/examples/real_swarm.py tcp|utp|mix LEECHERS OCTETS [--cede target/release/cede] [--log DIR]

One seed and so many leechers, each in a network namespace of its own, routed over an uplink of 1 Mbit/s with 125,000 octets of
buffer: tbf of a router, beyond the sender's own interface, where the sender's TCP neither hears of drops nor holds back
(see the comment at `Net`). Pieces have 256 KiB; of a mix, half of the leechers attempt TCP alone and half uTP, and accept both.
Prints progress every 20 s, then the completion times, how many copies the seed sent, and what each uplink dropped. --log writes what
the seed and the first leecher say and hear (peer_log alerts).

Needs root, ip, tc, ethtool, Debian's python3-libtorrent and a built `cede` for the tracker. Ends after 30 minutes at most, and
removes its namespaces.
"""

import argparse
import ctypes
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import libtorrent as lt

LIMIT_S = 1800
TRACKER = "10.253.0.1"
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Net:
    """Peers' namespaces, a router R that shapes, and a router S behind it.

    A packet goes from its peer to R, over the peer's own shaped link to S, back to R over one that is not shaped, and to the other
    peer. Neighbours are entered for good: else ARP would wait in the shaped queues.
    """

    def __init__(self, peers):
        self.prefix = f"rs{os.getpid()}"
        self.peers = peers
        self.names = [self.prefix + "R", self.prefix + "S"] + [self.peer(n) for n in range(1, peers + 1)]

    def peer(self, number):
        return f"{self.prefix}p{number}"

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)

    def build(self):
        r, s = self.names[:2]
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for name in (r, s):
            keys = ["ip_forward=1"] + [f"conf.{which}.{key}=0" for which in ("all", "default")
                                       for key in ("rp_filter", "send_redirects")]
            run("ip", "netns", "exec", name, "sysctl", "-qw", *[f"net.ipv4.{key}" for key in keys])
        self.link((s, "back", "10.254.0.1/30"), (r, "back", "10.254.0.2/30"))
        run("ip", "-n", s, "route", "add", "10.77.0.0/16", "via", "10.254.0.2")
        run("ip", "-n", s, "addr", "add", f"{TRACKER}/32", "dev", "lo")
        run("ip", "-n", r, "rule", "add", "pref", "10", "iif", "back", "lookup", "main")
        for n in range(1, self.peers + 1):
            peer, near, far, table = self.peer(n), f"p{n}", f"c{n}", str(100 + n)
            self.link((peer, "eth0", f"10.77.{n}.2/30"), (r, near, f"10.77.{n}.1/30"))
            self.link((r, far, f"10.250.{n}.1/30"), (s, far, f"10.250.{n}.2/30"))
            run("ip", "-n", peer, "route", "add", "default", "via", f"10.77.{n}.1", "dev", "eth0", "congctl", "cubic")
            run("ip", "-n", r, "route", "add", "default", "via", f"10.250.{n}.2", "dev", far, "table", table)
            run("ip", "-n", r, "rule", "add", "pref", table, "iif", near, "lookup", table)
            run("ip", "netns", "exec", r, "tc", "qdisc", "add", "dev", far, "root", "tbf",
                "rate", "1mbit", "burst", "1600", "limit", "125000")

    def link(self, a, b):
        run("ip", "link", "add", a[1], "netns", a[0], "type", "veth", "peer", "name", b[1], "netns", b[0])
        for name, device, address in (a, b):
            run("ip", "-n", name, "addr", "add", address, "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
            run("ip", "netns", "exec", name, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
        for here, there in ((a, b), (b, a)):
            shown = subprocess.run(["ip", "-n", there[0], "-br", "link", "show", there[1]],
                                   check=True, capture_output=True, text=True).stdout
            run("ip", "-n", here[0], "neigh", "replace", there[2].split("/")[0],
                "lladdr", shown.split()[2], "dev", here[1], "nud", "permanent")

    def drops(self):
        shown = subprocess.run(["ip", "netns", "exec", self.names[0], "tc", "-s", "qdisc", "show"],
                               check=True, capture_output=True, text=True).stdout
        blocks = [block for block in shown.split("qdisc ") if block.startswith("tbf")]
        return [int(block.split("dropped ")[1].split(",")[0]) for block in blocks]


def enter(namespace):
    """This thread, and those that it starts from now on, are in a namespace."""
    handle = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    if LIBC.setns(handle, CLONE_NEWNET):
        sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
    os.close(handle)


def make_torrent(folder, octets):
    (folder / "seed").mkdir()
    content = folder / "seed" / "content"
    content.write_bytes(random.Random(7).randbytes(octets))
    files = lt.file_storage()
    lt.add_files(files, str(content))
    torrent = lt.create_torrent(files, 256 << 10, lt.create_torrent.v1_only)
    torrent.add_tracker(f"http://{TRACKER}:6969/announce")
    lt.set_piece_hashes(torrent, str(folder / "seed"))
    (folder / "t.torrent").write_bytes(lt.bencode(torrent.generate()))
    return lt.torrent_info(str(folder / "t.torrent"))


class Peer:
    def __init__(self, net, number, mode, info, folder, log):
        enter(net.peer(number))
        dials = {"tcp": (True, False), "utp": (False, True)}.get(mode, (True, True))
        accepts = dials
        if mode == "mix" and number > 1:
            dials = (True, False) if number % 2 == 0 else (False, True)
        status, said = lt.alert.category_t.status_notification, lt.alert.category_t.peer_log_notification
        self.session = lt.session({
            "listen_interfaces": f"10.77.{number}.2:6881",
            "enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
            "enable_outgoing_tcp": dials[0], "enable_outgoing_utp": dials[1],
            "enable_incoming_tcp": accepts[0], "enable_incoming_utp": accepts[1],
            "out_enc_policy": int(lt.enc_policy.disabled), "in_enc_policy": int(lt.enc_policy.disabled),
            "alert_mask": int(status) | (int(said) if log else 0), "alert_queue_size": 1_000_000,
        })
        params = lt.add_torrent_params()
        params.ti, params.save_path = info, str(folder)
        if number == 1:
            params.flags |= lt.torrent_flags.seed_mode
        self.handle = self.session.add_torrent(params)
        self.log, self.done_s = log, None

    def listen(self, now_s):
        for alert in self.session.pop_alerts():
            if self.log:
                self.log.write(f"{now_s:.4f} {alert.message()}\n")
            if self.done_s is None and isinstance(alert, lt.torrent_finished_alert):
                self.done_s = now_s


def swarm(net, args, folder):
    info = make_torrent(folder, args.octets)
    logs = {}
    if args.log:
        args.log.mkdir(parents=True, exist_ok=True)
        logs = {1: open(args.log / "seed.txt", "w"), 2: open(args.log / "leecher.txt", "w")}
    seed = Peer(net, 1, args.mode, info, folder / "seed", logs.get(1))
    time.sleep(2)
    leechers = []
    for number in range(2, args.leechers + 2):
        home = folder / str(number)
        home.mkdir()
        leechers.append(Peer(net, number, args.mode, info, home, logs.get(number)))
    began, told_s = time.monotonic(), 0
    while (now_s := time.monotonic() - began) < LIMIT_S:
        for peer in [seed] + leechers:
            peer.listen(now_s)
        done = [peer.done_s for peer in leechers if peer.done_s is not None]
        if len(done) == len(leechers):
            return seed, leechers
        if now_s >= told_s:
            told_s += 20
            mean = statistics.mean(peer.handle.status().progress for peer in leechers)
            print(f"{now_s:.0f} s: {len(done)} of {len(leechers)} complete, {100 * mean:.0f} % on average", flush=True)
        time.sleep(0.05)
    sys.exit(f"not complete after {LIMIT_S} s")


def report(net, args, seed, leechers):
    def line(name, peers):
        times = [peer.done_s for peer in peers]
        print(f"{name}: mean {statistics.mean(times):.1f} s, sd {statistics.pstdev(times):.1f}, last {max(times):.1f}")

    line("all", leechers)
    if args.mode == "mix":
        line("attempt TCP (13)", leechers[0::2])
        line("attempt uTP (14)", leechers[1::2])
    print(f"the seed sent {seed.handle.status().total_payload_upload / args.octets:.2f} copies")
    drops = net.drops()
    print(f"dropped: {drops[0]} by the seed's uplink, {statistics.mean(drops[1:]):.0f} by a leecher's on average")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["tcp", "utp", "mix"])
    parser.add_argument("leechers", type=int)
    parser.add_argument("octets", type=int)
    parser.add_argument("--cede", default="target/release/cede", help="for the tracker")
    parser.add_argument("--log", type=pathlib.Path, help="a folder for what the seed and a leecher say")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root: run it with sudo")
    if not 2 <= args.leechers <= 250:
        sys.exit("take 2 to 250 leechers")
    missing = [tool for tool in ("ip", "tc", "ethtool", args.cede) if not shutil.which(tool)]
    if missing:
        sys.exit(f"not found: {', '.join(missing)} (apt install iproute2 ethtool; cargo build --release)")
    # Ended by a signal, it removes its namespaces as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory() as folder, Net(args.leechers + 1) as net:
        command = ["ip", "netns", "exec", net.names[1], args.cede, "torrent", "tracker", "-B", TRACKER]
        tracker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            report(net, args, *swarm(net, args, pathlib.Path(folder)))
            sys.stdout.flush()
        finally:
            tracker.terminate()
            tracker.wait()
    # libtorrent's sessions would say good-bye to the tracker, from namespaces that are gone, for half a minute.
    os._exit(0)


if __name__ == "__main__":
    main()
