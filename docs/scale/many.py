"""Maps `cede meter` over many captures with Dask, and merges what it found. See docs/scale.md.

    python docs/scale/many.py captures/*.pcap.gz --out delays                       two workers on this machine
    python docs/scale/many.py captures/*.pcap.gz --out /shared/delays --scheduler tcp://head:8786

Each task reads one capture and adds its files to the data set. The data set is then merged host by host: sums and seconds
are added, and so are the counts of histograms' buckets, which are the same everywhere; nothing is lost by that.
Needs `pip install distributed pyarrow`, and `cede` on the workers' path (or --cede).
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
from dask.distributed import Client, LocalCluster, as_completed, get_worker


def meter(cede, capture, out):
    """Runs on a worker: reads one capture. The capture, the exit code, what was complained of, and who did it."""
    command = [cede, "meter", capture, "--parquet", out, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return capture, done.returncode, done.stderr.strip(), get_worker().name


def merged(out):
    """What all captures say of each host under each protocol, the worst first."""

    def table(name, by, sums):
        if not (Path(out) / name).is_dir():
            return []  # No capture had a sample.
        data = pyarrow.dataset.dataset(Path(out) / name, partitioning="hive").to_table()
        return data.group_by(by).aggregate(sums).to_pylist()

    who = ["host", "protocol"]
    added = ["samples", "sum_ms", "area_ms_s", "covered_s", "above_100ms_s"]
    hosts = table("hosts", who, [(name, "sum") for name in added] + [("max_ms", "max")])
    buckets = {}
    for row in table("histograms", who + ["low_us", "high_us"], [("samples", "sum")]):
        key = (row["host"], row["protocol"])
        buckets.setdefault(key, []).append((row["low_us"], row["high_us"], row["samples_sum"]))
    found = []
    for row in hosts:
        samples, covered = row["samples_sum"], row["covered_s_sum"]
        histogram = sorted(buckets[(row["host"], row["protocol"])])
        found.append({
            "host": row["host"],
            "protocol": row["protocol"],
            "samples": samples,
            "time_mean_ms": row["area_ms_s_sum"] / covered if covered else row["sum_ms_sum"] / samples,
            "covered_s": covered,
            "above_100ms_s": row["above_100ms_s_sum"],
            "p50_us": quantile(histogram, 0.50),
            "p95_us": quantile(histogram, 0.95),
            "max_ms": row["max_ms_max"],
        })
    return sorted(found, key=lambda host: -host["time_mean_ms"])


def quantile(histogram, share):
    """The ends of the bucket with the delay that this share of the samples do not exceed, in microseconds."""
    rank = max(1, math.ceil(share * sum(count for _, _, count in histogram)))
    for low, high, count in histogram:
        rank -= count
        if rank <= 0:
            return [low, high]
    raise ValueError("an empty histogram")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--out", required=True, help="folder of the data set, seen by all workers")
    parser.add_argument("--scheduler", help="address of a Dask scheduler; without one, workers on this machine")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cede", default="cede", help="the program on the workers")
    args = parser.parse_args()
    if args.scheduler:
        client = Client(args.scheduler)
    else:
        client = Client(LocalCluster(n_workers=args.workers, threads_per_worker=1, dashboard_address=None))
    failed, workers = 0, set()
    with client:
        paths = [str(Path(capture).resolve()) for capture in args.captures]
        tasks = client.map(meter, [args.cede] * len(paths), paths, [str(Path(args.out).resolve())] * len(paths))
        capture_of = {task.key: path for task, path in zip(tasks, paths)}
        for task in as_completed(tasks):
            if task.status != "finished":
                # Its worker died, or has no such program; the other captures count.
                failed += 1
                print(f"{capture_of[task.key]}: not read: {task.exception()}", file=sys.stderr)
                continue
            capture, code, complaint, worker = task.result()
            workers.add(worker)
            if code:
                failed += 1
                print(f"{capture}: exit code {code}: {complaint}", file=sys.stderr)
    print(json.dumps({"captures": len(paths), "failed": failed, "workers": len(workers), "hosts": merged(args.out)}))
    # A damaged capture yields what came before the damage, so the merge is there all the same.
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
