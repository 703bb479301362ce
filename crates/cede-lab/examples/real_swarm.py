"""A swarm of real libtorrent peers behind shaped uplinks, for docs/swarms.md.

    sudo python3 crates/cede-lab/examples/real_swarm.py tcp|utp|mix LEECHERS OCTETS [--tcp PERCENT] [--mbps N] [--buffer OCTETS]
        [--target MS] [--cede target/release/cede] [--log DIR]

One seed and so many leechers, each in a network namespace of its own, routed over an uplink of --mbps (1) with --buffer octets
(125,000): tbf of a router, beyond the sender's own interface, where the sender's TCP neither hears of drops nor holds back
(see the comment at `Net`). It counts octets of IP packets, as the simulated uplinks do. Pieces have 256 KiB; of a mix, --tcp (50) percent
of the leechers attempt TCP alone and the others uTP, and all accept both. The seed attempts both.
Prints progress every 20 s, then the completion times, how many copies the seed sent, what each uplink dropped, and the queue as each
packet left it: of all uplinks and the seed's, from the leechers' start to the last completion. --log writes what the seed and the first
leecher say and hear (peer_log alerts).

Needs root, ip, tc, ethtool, bpftrace (which reads the queue), Debian's python3-libtorrent and a built `cede` for the tracker. Ends
after 30 minutes at most, and removes its namespaces.
"""

import argparse
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
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

    def __init__(self, peers, mbps, buffer):
        self.prefix = f"rs{os.getpid()}"
        self.peers, self.mbps, self.buffer = peers, mbps, buffer
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
            run("ip", "netns", "exec", r, "tc", "qdisc", "add", "dev", far, "root", "stab", "overhead", "-14", "tbf",
                "rate", f"{self.mbps}mbit", "burst", "1600", "limit", str(self.buffer))

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


class Queues:
    """What is left in each uplink's queue as a packet leaves it, counted in the kernel by steps of 2 ms.

    The tracepoint is below tracefs, which is mounted for the one who reads it alone.
    """

    def __init__(self, net):
        self.net, self.step = net, int(net.mbps * 250)
        shown = subprocess.run(["ip", "-n", net.names[0], "-o", "link", "show", "c1"],
                               check=True, capture_output=True, text=True).stdout
        seed, inode = shown.split(":")[0], os.stat(f"/var/run/netns/{net.names[0]}").st_ino
        # Steps of the histogram: at most a thousand, and one is that of a full buffer.
        self.step = max(self.step, -(-net.buffer // 999))
        program = f"""BEGIN {{ printf("ready\\n"); }}
            tracepoint:qdisc:qdisc_dequeue /args->packets > 0/ {{
                $q = (struct Qdisc *)args->qdisc;
                if ($q->ops->id == "tbf" && $q->dev_queue->dev->nd_net.net->ns.inum == {inode}) {{
                    $p = (struct sk_buff *)args->skbaddr;
                    $ip = (struct iphdr *)($p->head + $p->network_header);
                    @left[args->ifindex == {seed}] = lhist($q->qstats.backlog, 0, {net.buffer + self.step}, {self.step});
                    @mean[args->ifindex == {seed}] = stats($q->qstats.backlog);
                    @bytes[$ip->protocol] = sum($p->len);
                }}
            }}"""
        mounted = 'mount -t tracefs nodev /sys/kernel/tracing && exec bpftrace -f json -e "$0"'
        self.reader = subprocess.Popen(["unshare", "-m", "sh", "-c", mounted, program],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while '"ready' not in (said := self.reader.stdout.readline()):
            if not said:
                sys.exit("bpftrace cannot read the queues")

    def end(self):
        """Mean and 95th percentile in ms of all uplinks, the same of the seed's, and TCP's share of the octets."""
        threading.Thread(target=self.ask_for_the_end, daemon=True).start()
        maps = {}
        for line in self.reader.stdout:
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("type") in ("map", "hist", "stats"):
                maps.update(said["data"])
        self.reader.wait()
        octets = {int(protocol): count for protocol, count in maps["@bytes"].items()}
        of_all, of_seed = (self.summary(maps, wanted) for wanted in (list(maps["@mean"]), ["1"]))
        return of_all, of_seed, octets.get(6, 0) / (octets.get(6, 0) + octets.get(17, 0))

    def ask_for_the_end(self):
        """Once in a while bpftrace does not hear it the first time."""
        while self.reader.poll() is None:
            self.reader.send_signal(signal.SIGINT)
            time.sleep(5)

    def summary(self, maps, links):
        octets_per_ms = self.net.mbps * 125
        stats = [maps["@mean"][link] for link in links]
        mean = sum(each["total"] for each in stats) / sum(each["count"] for each in stats) / octets_per_ms
        steps = {}
        for link in links:
            for step in maps["@left"][link]:
                steps[step.get("min", -1)] = steps.get(step.get("min", -1), 0) + step["count"]
        rest = 0.95 * sum(steps.values())
        for least in sorted(steps):
            rest -= steps[least]
            if rest <= 0:
                return mean, (least + self.step / 2) / octets_per_ms
        return mean, None


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


def attempts_tcp(args, number):
    """Whether a peer of a mix is one of those that attempt TCP, which are spread evenly among the leechers."""
    return (number - 1) * args.tcp // 100 > (number - 2) * args.tcp // 100


class Peer:
    def __init__(self, net, number, args, info, folder, log):
        enter(net.peer(number))
        dials = {"tcp": (True, False), "utp": (False, True)}.get(args.mode, (True, True))
        accepts = dials
        if args.mode == "mix" and number > 1:
            dials = (True, False) if attempts_tcp(args, number) else (False, True)
        status, said = lt.alert.category_t.status_notification, lt.alert.category_t.peer_log_notification
        self.session = lt.session({
            "listen_interfaces": f"10.77.{number}.2:6881",
            "enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
            "enable_outgoing_tcp": dials[0], "enable_outgoing_utp": dials[1],
            "enable_incoming_tcp": accepts[0], "enable_incoming_utp": accepts[1],
            "utp_target_delay": args.target,
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
    seed = Peer(net, 1, args, info, folder / "seed", logs.get(1))
    time.sleep(2)
    queues, leechers, first = Queues(net), [], time.monotonic()
    for number in range(2, args.leechers + 2):
        home = folder / str(number)
        home.mkdir()
        leechers.append(Peer(net, number, args, info, home, logs.get(number)))
    print(f"the leechers began within {time.monotonic() - first:.1f} s", flush=True)
    began, told_s = time.monotonic(), 0
    while (now_s := time.monotonic() - began) < LIMIT_S:
        for peer in [seed] + leechers:
            peer.listen(now_s)
        done = [peer.done_s for peer in leechers if peer.done_s is not None]
        if len(done) == len(leechers):
            return seed, leechers, queues.end()
        if now_s >= told_s:
            told_s += 20
            mean = statistics.mean(peer.handle.status().progress for peer in leechers)
            print(f"{now_s:.0f} s: {len(done)} of {len(leechers)} complete, {100 * mean:.0f} % on average", flush=True)
        time.sleep(0.05)
    sys.exit(f"not complete after {LIMIT_S} s")


def report(net, args, seed, leechers, queues):
    def line(name, peers):
        times = [peer.done_s for peer in peers]
        if times:
            print(f"{name}: mean {statistics.mean(times):.1f} s, sd {statistics.pstdev(times):.1f}, last {max(times):.1f}")

    line("all", leechers)
    if args.mode == "mix":
        for name, wanted in (("attempt TCP (13)", True), ("attempt uTP (14)", False)):
            line(name, [peer for at, peer in enumerate(leechers, 2) if attempts_tcp(args, at) == wanted])
    print(f"the seed sent {seed.handle.status().total_payload_upload / args.octets:.2f} copies")
    drops = net.drops()
    print(f"dropped: {drops[0]} by the seed's uplink, {statistics.mean(drops[1:]):.0f} by a leecher's on average")
    (mean, p95), (seed_mean, seed_p95), tcp = queues
    print(f"queue: mean {mean:.1f} ms, p95 {p95:.0f}; the seed's: mean {seed_mean:.1f}, p95 {seed_p95:.0f}; TCP {100 * tcp:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["tcp", "utp", "mix"])
    parser.add_argument("leechers", type=int)
    parser.add_argument("octets", type=int)
    parser.add_argument("--tcp", type=int, default=50, help="percent of a mix's leechers that attempt TCP")
    parser.add_argument("--mbps", type=float, default=1.0, help="each uplink, Mbit/s")
    parser.add_argument("--buffer", type=int, default=125_000, help="of each uplink, octets")
    parser.add_argument("--target", type=int, default=100, help="of delay, over uTP, ms")
    parser.add_argument("--cede", default="target/release/cede", help="for the tracker")
    parser.add_argument("--log", type=pathlib.Path, help="a folder for what the seed and a leecher say")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root: run it with sudo")
    if not 1 <= args.leechers <= 250:
        sys.exit("take 1 to 250 leechers")
    missing = [tool for tool in ("ip", "tc", "ethtool", "bpftrace", args.cede) if not shutil.which(tool)]
    if missing:
        sys.exit(f"not found: {', '.join(missing)} (apt install iproute2 ethtool bpftrace; cargo build --release)")
    # Ended by a signal, it removes its namespaces as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory() as folder, Net(args.leechers + 1, args.mbps, args.buffer) as net:
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
