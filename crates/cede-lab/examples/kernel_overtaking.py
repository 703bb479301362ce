"""One flow of the kernel's TCP over a path on which packets overtake one another, for docs/validation.md.

    sudo python3 crates/cede-lab/examples/kernel_overtaking.py cubic|reno|bbr JITTER_MS [--seconds N] [--rate MBIT] [--rtt MS]
        [--buffer MS] [--seed N]

Two network namespaces, each with a TUN device whose packets come here: those of the sender pass a queue of --buffer (200 ms) at --rate
(20 Mbit/s of IP packets), take half of --rtt (40 ms), and 0 to JITTER_MS more, each packet by itself; those of the receiver take the other half.
Prints the payload that arrived in --seconds (60), all of it and the second half, what the sender's kernel counted of repairs, what the queue
dropped and how late the latest packet was.

Needs root, ip, nstat and /dev/net/tun. Removes its namespaces.
"""

import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
SENDER, RECEIVER, PORT = "10.77.0.1", "10.77.0.2", 5000
COUNTS = "TcpRetransSegs TcpExtTCPSackRecovery TcpExtTCPPartialUndo TcpExtTCPFullUndo TcpExtTCPDSACKUndo TcpExtTCPDSACKRecv TcpExtTCPTimeouts"


def run(command):
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


def tun(name, namespace, address, peer):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    run(f"ip link set {name} netns {namespace}")
    run(f"ip -n {namespace} addr add {address} peer {peer} dev {name}")
    run(f"ip -n {namespace} link set {name} mtu 1500 txqueuelen 1000 up")
    for setting in ("tcp_rmem=4096 131072 16777216", "tcp_wmem=4096 87380 16777216", "tcp_no_metrics_save=1"):
        command = ["ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv4." + setting]
        subprocess.run(command, check=True)
    return fd


class Way:
    """Both directions of the path, until `end`."""

    def __init__(self, args, there, back):
        self.args, self.there, self.back = args, there, back
        self.random = random.Random(args.seed)
        self.due, self.order, self.free_at = [], 0, 0.0
        self.drops = self.packets = 0
        self.latest = 0.0

    def take(self, fd, packet, now):
        if packet[0] >> 4 != 4:
            return
        self.order += 1
        half = self.args.rtt / 2e3
        if fd == self.back:
            heapq.heappush(self.due, (now + half, self.order, self.there, packet))
            return
        if self.free_at - now > self.args.buffer / 1e3:
            self.drops += 1
            return
        self.packets += 1
        self.free_at = max(self.free_at, now) + len(packet) * 8e-6 / self.args.rate
        late = self.random.random() * self.args.jitter / 1e3
        heapq.heappush(self.due, (self.free_at + half + late, self.order, self.back, packet))

    def deliver(self, now):
        while self.due and self.due[0][0] <= now:
            at, _, fd, packet = heapq.heappop(self.due)
            self.latest = max(self.latest, now - at)
            try:
                os.write(fd, packet)
            except OSError:
                pass

    def run(self, end):
        poll = select.epoll()
        for fd in (self.there, self.back):
            poll.register(fd, select.EPOLLIN)
        while (now := time.monotonic()) < end:
            self.deliver(now)
            wait = self.due[0][0] - time.monotonic() if self.due else 0.05
            for fd, _ in poll.poll(min(max(wait, 0.0), 0.05)):
                for _ in range(64):
                    try:
                        packet = os.read(fd, 2000)
                    except BlockingIOError:
                        break
                    self.take(fd, packet, time.monotonic())


def socket_in(namespace):
    """A socket that lives in another namespace: a thread of its own visits it."""
    made = []

    def make():
        with open(f"/var/run/netns/{namespace}") as there:
            if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        made.append(socket.socket())

    visit = threading.Thread(target=make)
    visit.start()
    visit.join()
    return made[0]


def receive(listener, seconds, counts):
    flow, _ = listener.accept()
    begun = time.monotonic()
    while (left := begun + seconds - time.monotonic()) > 0:
        flow.settimeout(left)
        try:
            octets = len(flow.recv(1 << 18))
        except TimeoutError:
            break
        counts[time.monotonic() - begun > seconds / 2] += octets


def send(namespace, controller, seconds):
    flow = socket_in(namespace)
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
    flow.connect((RECEIVER, PORT))
    flow.settimeout(1)
    end, block = time.monotonic() + seconds, bytes(1 << 16)
    while time.monotonic() < end:
        try:
            flow.send(block)
        except TimeoutError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("controller")
    parser.add_argument("jitter", type=float)
    for name, default in (("seconds", 60), ("rate", 20), ("rtt", 40), ("buffer", 200), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    names = [f"over{os.getpid()}{end}" for end in "ab"]
    for name in names:
        run(f"ip netns add {name}")
    try:
        there = tun(f"ota{os.getpid()}", names[0], SENDER, RECEIVER)
        back = tun(f"otb{os.getpid()}", names[1], RECEIVER, SENDER)
        way = Way(args, there, back)
        listener = socket_in(names[1])
        listener.bind((RECEIVER, PORT))
        listener.listen(1)
        counts = [0, 0]
        threads = [
            threading.Thread(target=receive, args=(listener, args.seconds, counts), daemon=True),
            threading.Thread(target=send, args=(names[0], args.controller, args.seconds), daemon=True),
        ]
        # The path has a process of its own: the ends' threads would hold it up.
        pipe = os.pipe()
        child = os.fork()
        if child == 0:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
            way.run(time.monotonic() + args.seconds + 2)
            os.write(pipe[1], f"{way.packets} packets, {way.drops} dropped, the latest {1e3 * way.latest:.1f} ms late".encode())
            os._exit(0)
        for thread in threads:
            thread.start()
        os.waitpid(child, 0)
        rate = [count * 8e-6 / args.seconds for count in counts]
        print(f"{sum(rate):.2f} Mbit/s, second half {2 * rate[1]:.2f}")
        counted = subprocess.run(["ip", "netns", "exec", names[0], "nstat", "-az", *COUNTS.split()], capture_output=True, text=True)
        print(", ".join(" ".join(line.split()[:2]) for line in counted.stdout.splitlines()[1:]))
        print(os.read(pipe[0], 1000).decode())
    finally:
        for name in names:
            run(f"ip netns del {name}")


if __name__ == "__main__":
    sys.exit(main())
