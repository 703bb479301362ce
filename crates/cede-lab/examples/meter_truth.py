"""The meter beside the truth, on captures of real clients behind a shaped uplink, for docs/bufferbloat.md.

    sudo python3 crates/cede-lab/examples/meter_truth.py CASE [--mbit 1] [--family 4|6] [--cooked] [--hidden chirp|bulk]
        [--beside cubic|reno|bbr] [--one-clock] [--both] [--seconds 60] [--cede target/release/cede] [--keep DIR]

CASE is `transmission` (Debian's daemon seeds over uTP to libtorrent, enciphered, its DHT on the same port), `libtorrent` (both
ends, in the clear), `cubic`, `reno` or `bbr` (the kernel's TCP, always sending), `chirp` (bursts by Reno every ten seconds),
`heartbeat` (40 octets ten times a second over TCP) or `downloads` (connections of 40 kB, one a second after the other). --hidden
adds traffic of the same sender that the observer does not see, --beside a connection that it does see, which always sends and begins
eight seconds sooner; with --one-clock its connections stamp without offsets of their own (`tcp_timestamps=2`).

The sender is in one network namespace, the observer in another; the uplink between is a token bucket with a buffer of six seconds
(one at 10 Mbit/s) on a router's port, beyond the sender's own interface. Each packet is captured as it enters the router and as it arrives; the
difference less the least one is its true queueing delay. `cede meter --series` is held against that, packet by packet. --cooked
captures on all interfaces of the observer (Linux cooked v2); with --both the observer's side answers over the same connection, as much as
it can by the same controller through as much as the uplink has, so that segments acknowledge and acknowledgements are sent besides; --keep leaves the captures and the truth in a folder.

Needs root, ip, tc, ethtool, tcpdump, a built `cede` and for the first two cases Debian's python3-libtorrent and transmission-daemon. Ends
after ten minutes at most, and removes its namespaces.
"""

import argparse
import contextlib
import csv
import ctypes
import gzip
import io
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
TCP_CONGESTION = 13
PORT, HIDDEN_PORT, BESIDE_PORT = 51413, 9, 5001
BESIDE_SOONER_S = 8
# A packet that met no more met an empty queue.
EMPTY_US = 20_000
ADDRESSES = {
    4: {"B": "10.71.1.2/24", "near": "10.71.1.1/24", "far": "10.71.2.1/24", "A": "10.71.2.2/24", "H": "10.71.2.3/24"},
    6: {"B": "2001:db8:1::2/64", "near": "2001:db8:1::1/64", "far": "2001:db8:2::1/64", "A": "2001:db8:2::2/64",
        "H": "2001:db8:2::3/64"},
}


def run(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more).stdout


class Net:
    """B, the sender; R, the router that shapes; A, the observer; H, for whom hidden traffic is. A and H are on one bridge behind R."""

    def __init__(self, args):
        self.prefix, self.args = f"mt{os.getpid()}", args
        self.names = {name: self.prefix + name for name in "BRAH"}

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)

    def build(self):
        plan = ADDRESSES[self.args.family]
        for name in self.names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        r = self.names["R"]
        run("ip", "netns", "exec", r, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        run("ip", "-n", r, "link", "add", "far", "type", "bridge")
        self.wire("B", "eth0", "near")
        for end in "AH":
            self.wire(end, "eth0", f"to{end}")
            run("ip", "-n", r, "link", "set", f"to{end}", "master", "far")
        run("ip", "-n", r, "link", "set", "far", "up")
        flags = ["nodad"] if self.args.family == 6 else []
        for name, device, place in (("B", "eth0", "B"), ("R", "near", "near"), ("R", "far", "far"), ("A", "eth0", "A"),
                                    ("H", "eth0", "H")):
            run("ip", "-n", self.names[name], "addr", "add", plan[place], "dev", device, *flags)
        for name, gateway in (("B", "near"), ("A", "far"), ("H", "far")):
            run("ip", "-n", self.names[name], "route", "add", "default", "via", plan[gateway].split("/")[0])
        for one, other in (("B", "near"), ("A", "far"), ("H", "far")):
            self.introduce((one, "eth0", one), ("R", other, other))
        buffer_s = 6 if self.args.mbit < 5 else 1
        for device in ("far", "near")[:2 if self.args.both else 1]:
            run("ip", "netns", "exec", r, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{self.args.mbit}mbit",
                "burst", "1600", "limit", str(int(self.args.mbit * 1e6 / 8 * buffer_s)))

    def introduce(self, *both):
        """Who has to ask for a neighbour waits in the queue that is shaped, and gives up, or asks again under way."""
        for (name, device, place), (of, its, which) in (both, both[::-1]):
            hardware = json.loads(run("ip", "-j", "-n", self.names[of], "link", "show", its))[0]["address"]
            run("ip", "-n", self.names[name], "neigh", "replace", ADDRESSES[self.args.family][which].split("/")[0],
                "lladdr", hardware, "dev", device, "nud", "permanent")

    def wire(self, end, device, other):
        name, r = self.names[end], self.names["R"]
        run("ip", "link", "add", device, "netns", name, "type", "veth", "peer", "name", other, "netns", r)
        for where, which in ((name, device), (r, other)):
            run("ip", "netns", "exec", where, "ethtool", "-K", which, "tso", "off", "gso", "off", "gro", "off")
            run("ip", "-n", where, "link", "set", which, "up")

    def address(self, end):
        return ADDRESSES[self.args.family][end].split("/")[0]

    def inside(self, end, work):
        """Runs work in a thread that is in a namespace."""

        def entered():
            handle = os.open(f"/var/run/netns/{self.names[end]}", os.O_RDONLY)
            if LIBC.setns(handle, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            os.close(handle)
            work()

        thread = threading.Thread(target=entered, daemon=True)
        thread.start()
        return thread

    def start(self, end, *command):
        return subprocess.Popen(["ip", "netns", "exec", self.names[end], *command],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# Traffic.

def swallow(taken):
    with contextlib.suppress(OSError):
        while True:
            with contextlib.suppress(TimeoutError):
                if not taken.recv(1 << 16):
                    return


def sink(net, end, port, answers):
    """Takes what comes; where asked to it answers with bulk by a controller until some time."""
    family = socket.AF_INET6 if net.args.family == 6 else socket.AF_INET
    ready = threading.Event()

    def answer(taken):
        with contextlib.suppress(OSError):
            while time.monotonic() < answers[1]:
                taken.send(random.randbytes(1 << 14))

    def work():
        with socket.create_server((net.address(end), port), family=family) as server:
            if answers:
                # Before anybody is accepted: who was ever paced stays so.
                server.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, answers[0].encode())
            ready.set()
            while True:
                taken = server.accept()[0]
                for does in (swallow, answer)[:2 if answers else 1]:
                    threading.Thread(target=does, args=(taken,), daemon=True).start()

    net.inside(end, work)
    ready.wait(5)


def tcp(net, end, port, kind, controller, until):
    """B sends to a sink: bulk, bursts (one of 1, 2, 4 ... 512 packets each ten seconds) or heartbeats."""
    family = socket.AF_INET6 if net.args.family == 6 else socket.AF_INET
    sink(net, end, port, (controller, until) if net.args.both and end == "A" else None)

    def work():
        with socket.socket(family, socket.SOCK_STREAM) as own:
            own.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, controller.encode())
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            own.connect((net.address(end), port))
            if net.args.both:
                threading.Thread(target=swallow, args=(own,), daemon=True).start()
            own.settimeout(1)
            round_ = 0
            while time.monotonic() < until:
                octets, pause_s = {"bulk": (1 << 14, 0), "chirp": (1400 << round_ % 10, 10), "heartbeat": (40, 0.1)}[kind]
                left = memoryview(random.randbytes(octets))
                while left and time.monotonic() < until:
                    try:
                        left = left[own.send(left):]
                    except TimeoutError:
                        pass
                round_ += 1
                time.sleep(min(pause_s, max(0, until - time.monotonic())))

    return net.inside("B", work)


def downloads(net, controller, until):
    """Connections one after the other, each of which is closed once the kernel has what it sends."""
    family = socket.AF_INET6 if net.args.family == 6 else socket.AF_INET
    sink(net, "A", PORT, None)

    def work():
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError), socket.socket(family, socket.SOCK_STREAM) as own:
                own.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, controller.encode())
                own.settimeout(20)
                own.connect((net.address("A"), PORT))
                own.sendall(random.randbytes(40_000))
            time.sleep(1)

    return net.inside("B", work)


def torrent_of(folder, octets):
    import libtorrent as lt
    (folder / "seed").mkdir()
    drawn, left = random.Random(5), octets
    with (folder / "seed" / "content").open("wb") as out:
        while left > 0:
            # Of more than 268 MB at once Python's generator has none.
            left -= out.write(drawn.randbytes(min(left, 1 << 20)))
    files = lt.file_storage()
    lt.add_files(files, str(folder / "seed" / "content"))
    torrent = lt.create_torrent(files, 256 << 10, lt.create_torrent.v1_only)
    lt.set_piece_hashes(torrent, str(folder / "seed"))
    (folder / "t.torrent").write_bytes(lt.bencode(torrent.generate()))
    return lt.torrent_info(str(folder / "t.torrent"))


def libtorrent_peer(net, end, folder, info, is_seed, is_enciphered):
    """A session in a namespace, as a list that it is put into."""
    import libtorrent as lt
    policy = lt.enc_policy.forced if is_enciphered else lt.enc_policy.disabled
    address = f"[{net.address(end)}]" if net.args.family == 6 else net.address(end)
    made = []

    def work():
        session = lt.session({
            "listen_interfaces": f"{address}:{PORT}", "enable_dht": True, "dht_bootstrap_nodes": "",
            "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False, "enable_outgoing_tcp": False,
            "enable_incoming_tcp": False, "out_enc_policy": int(policy), "in_enc_policy": int(policy),
            "allowed_enc_level": int(lt.enc_level.rc4),
        })
        params = lt.add_torrent_params()
        params.ti, params.save_path = info, str(folder)
        if is_seed:
            params.flags |= lt.torrent_flags.seed_mode
        made.append((session, session.add_torrent(params)))

    net.inside(end, work).join(10)
    return made[0]


def swarm(net, folder, until):
    """A seed in B and a leecher in A; what must be ended."""
    octets = int(net.args.mbit * 1e6 / 8 * net.args.seconds * 1.2)
    info = torrent_of(folder, octets)
    (folder / "leecher").mkdir()
    daemons = []
    if net.args.case == "transmission":
        home = folder / "transmission"
        home.mkdir()
        (home / "settings.json").write_text(json.dumps({
            "peer-port": PORT, "bind-address-ipv4": "0.0.0.0", "bind-address-ipv6": "::", "encryption": 2, "utp-enabled": True,
            "dht-enabled": True, "lpd-enabled": False, "pex-enabled": True, "port-forwarding-enabled": False,
            "download-dir": str(folder / "seed"), "rpc-whitelist-enabled": False, "rpc-port": 9091, "watch-dir-enabled": True,
            "watch-dir": str(home),
        }))
        shutil.copy(folder / "t.torrent", home / "t.torrent")
        daemons.append(net.start("B", "transmission-daemon", "-f", "-g", str(home)))
        time.sleep(4)
    else:
        seed = libtorrent_peer(net, "B", folder / "seed", info, True, False)
    session, handle = libtorrent_peer(net, "A", folder / "leecher", info, False, net.args.case == "transmission")
    session.add_dht_node((net.address("B"), PORT))
    while time.monotonic() < until and not handle.status().is_seeding:
        if handle.status().num_peers == 0:
            handle.connect_peer((net.address("B"), PORT))
        time.sleep(1)
    print(f"{handle.status().total_payload_download / 1e6:.1f} MB went over")
    return daemons, [session] + ([] if daemons else [seed[0]])


# The truth.

def packets(path, snap):
    """Time in ns and what identifies a packet: its transport header and what follows, of the sender's."""
    data = path.read_bytes()
    magic, kind = struct.unpack_from("<I", data)[0], struct.unpack_from("<I", data, 20)[0]
    scale = {0xa1b2c3d4: 1000, 0xa1b23c4d: 1}[magic]
    at = 24
    while at + 16 <= len(data):
        s, sub, captured, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16:at + 16 + captured]
        at += 16 + captured
        ip = frame[20:] if kind == 276 else frame[14:]
        if not ip:
            continue
        if ip[0] >> 4 == 4:
            protocol, source, rest = ip[9], ip[12:16], ip[(ip[0] & 15) * 4:]
        else:
            protocol, source, rest = ip[6], ip[8:24], ip[40:]
        if protocol in (6, 17):
            yield s * 1_000_000_000 + sub * scale, source, rest[:snap]


def truth(folder, net):
    """Of B's packets: when each arrived in us, and how long it had queued in us."""
    family = socket.AF_INET6 if net.args.family == 6 else socket.AF_INET
    sender = socket.inet_pton(family, net.address("B"))
    entered = {}
    for time_ns, source, what in packets(folder / "in.pcap", 80):
        if source == sender:
            entered.setdefault(what, []).append(time_ns)
    pairs = []
    for time_ns, source, what in packets(folder / "A.pcap", 80):
        # Questions of the distributed hash table are repeated, octet for octet: what arrives is the latest before.
        before = [entered_ns for entered_ns in entered.get(what, []) if entered_ns <= time_ns]
        if source == sender and before:
            port = struct.unpack_from(">H", what)[0]
            pairs.append((time_ns // 1000, port, (time_ns - before[-1]) / 1000))
    least = min(queue for _, _, queue in pairs)
    return {(time_us, port): queue - least for time_us, port, queue in pairs}


# The comparison.

def series(args, capture, estimator, address):
    said = run(args.cede, "meter", str(capture), "--series", "--estimator", estimator)
    for row in csv.DictReader(io.StringIO(said)):
        host, port = row["from"].rsplit(":", 1)
        if host.strip("[]") == address:
            yield int(row["time_us"]), int(port), float(row["queue_us"]), row["protocol"]


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def area_between(before, after, had_left):
    """Below the queue from one packet to the next, and the time that it is known for: a line, or what the first left has drained."""
    (from_us, from_queue), (to_us, to_queue) = before, after
    gap_us = to_us - from_us
    alike = abs(to_queue - from_queue) <= 100_000
    is_line = gap_us <= 1_000_000 or gap_us <= max(from_queue, to_queue) + 1_000_000
    if gap_us > 10_000_000 or not is_line and not alike:
        return 0, 0
    if is_line or had_left:
        begins = from_queue if not had_left else to_queue if to_queue <= EMPTY_US else 0
        return gap_us * (begins + to_queue) / 2, gap_us
    level = min(from_queue, to_queue)
    falls_us = from_queue - level
    return falls_us * (from_queue + level) / 2 + (gap_us - falls_us) * level, gap_us


def mean_over_time(arrived):
    """Over the times in which the sender says enough for the queue to be known (docs/meter.md, the column `mean_ms`)."""
    area = covered = 0
    # Since a packet met an empty queue each entered before the one before it had left: what was seen accounts for it.
    is_accounted = bool(arrived) and arrived[0][1] <= EMPTY_US
    for before, after in zip(arrived, arrived[1:]):
        has_left, is_empty = after[0] - before[0] > after[1] + 2_000, after[1] <= EMPTY_US
        had_left = has_left and is_accounted and (is_empty or after[1] <= before[1])
        is_accounted = is_empty or is_accounted and not has_left
        more, us = area_between(before, after, had_left)
        area, covered = area + more, covered + us
    return area / max(covered, 1)


def compare(args, net, folder, true):
    protocol = "uTP" if args.case in ("transmission", "libtorrent") else "TCP"
    print(f"true: {len(true)} packets, the longest delay {max(true.values()) / 1000:.1f} ms")
    for estimator in ("direct", "echoed"):
        found = list(series(args, folder / "A.pcap", estimator, net.address("B")))
        other = sum(1 for *_, of in found if of != protocol)
        both = sorted((time_us, queue, true[time_us, port]) for time_us, port, queue, of in found
                      if of == protocol and (time_us, port) in true)
        if not both:
            print(f"{estimator}: no samples")
            continue
        errors = [abs(queue - real) / 1000 for _, queue, real in both]
        print(f"{estimator}: {len(errors)} samples, {other} of others; error p50 {quantile(errors, 0.5):.3f}, "
              f"p95 {quantile(errors, 0.95):.3f}, p99 {quantile(errors, 0.99):.3f}, longest {max(errors):.3f} ms; true mean over "
              f"time at these {mean_over_time([(at, real) for at, _, real in both]) / 1000:.1f} ms")
    for one in json.loads(run(args.cede, "meter", str(folder / "A.pcap"), "--json"))["hosts"]:
        whose = {net.address("B"): "the meter's", net.address("A"): "beside the observer, where no queue is, the"}.get(one["address"])
        if whose and one["queue"] and (args.both or one["address"] == net.address("B")):
            print(f"{whose} mean over time: {one['queue']['time_mean_ms']:.1f} ms; flags: {' '.join(one['flags']) or 'none'}")


def experiment(args, net, folder):
    kinds = {"cubic": "bulk", "reno": "bulk", "bbr": "bulk", "chirp": "chirp", "heartbeat": "heartbeat"}
    on = ["-i", "any", "-y", "LINUX_SLL2"] if args.cooked else ["-i", "eth0"]
    own = f"host {net.address('B')} and host {net.address('A')}"
    urgent = ["chrt", "-f", "50"]
    dump = ["tcpdump", "-Z", "root", "-q", "-B", "65536", "-s", "200", "--time-stamp-precision=nano"]
    captures = [net.start("R", *urgent, *dump, "-i", "near", "-Q", "in", "-w", str(folder / "in.pcap"), own),
                net.start("A", *urgent, *dump, *on, "-w", str(folder / "A.pcap"), own)]
    time.sleep(2)
    until = time.monotonic() + args.seconds
    daemons = []
    if args.one_clock:
        net.inside("B", lambda: pathlib.Path("/proc/sys/net/ipv4/tcp_timestamps").write_text("2")).join()
    try:
        if args.hidden:
            # What is seen begins before: a queue that was never empty cannot be told from a longer way.
            begin = threading.Timer(5, tcp, (net, "H", HIDDEN_PORT, args.hidden, "cubic", until))
            begin.daemon = True
            begin.start()
        if args.beside:
            tcp(net, "A", BESIDE_PORT, "bulk", args.beside, until)
            time.sleep(BESIDE_SOONER_S)
        if args.case == "downloads":
            downloads(net, "cubic", until).join(args.seconds + 40)
        elif args.case in kinds:
            controller = {"chirp": "reno", "heartbeat": "cubic"}.get(args.case, args.case)
            tcp(net, "A", PORT, kinds[args.case], controller, until).join(args.seconds + 20)
        else:
            daemons, sessions = swarm(net, folder, until)
        time.sleep(1)
    finally:
        for process in captures + daemons:
            process.terminate()
        for process in captures + daemons:
            process.wait(20)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["transmission", "libtorrent", "cubic", "reno", "bbr", "chirp", "heartbeat", "downloads"])
    parser.add_argument("--mbit", type=float, default=1)
    parser.add_argument("--family", type=int, choices=[4, 6], default=4)
    parser.add_argument("--cooked", action="store_true")
    parser.add_argument("--hidden", choices=["chirp", "bulk"])
    parser.add_argument("--beside", choices=["cubic", "reno", "bbr"])
    parser.add_argument("--one-clock", action="store_true")
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--cede", default="target/release/cede")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root: run it with sudo")
    if args.both and args.case not in ("cubic", "reno", "bbr"):
        sys.exit("--both is for cubic, reno and bbr")
    if not 5 <= args.seconds <= 600 or not 0.1 <= args.mbit <= 100:
        sys.exit("take 5 to 600 seconds and 0.1 to 100 Mbit/s")
    missing = [tool for tool in ("ip", "tc", "ethtool", "tcpdump", "chrt", args.cede) if not shutil.which(tool)]
    if missing:
        sys.exit(f"not found: {', '.join(missing)} (apt install iproute2 ethtool tcpdump util-linux; cargo build --release)")
    return args


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        with Net(args) as net:
            experiment(args, net, folder)
            true = truth(folder, net)
            compare(args, net, folder, true)
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / "A.pcap", args.keep / "A.pcap")
                with gzip.open(args.keep / "truth.csv.gz", "wt") as out:
                    out.write("arrived_us,port,queue_us\n")
                    out.writelines(f"{time_us},{port},{queue}\n" for (time_us, port), queue in sorted(true.items()))
            sys.stdout.flush()
        # libtorrent's sessions say good-bye for half a minute, from namespaces that are gone.
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
