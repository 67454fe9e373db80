"""What kvcache-simulator 0.1.3 says of traces: reads lines of JSON
{"block_size", "warmup", "capacities", "requests": [[input_length, [ids]]]} and
prints for each {"ceiling", "points": [[policy, capacity, hit tokens]]}, without
the points that it leaves out because the cache was not full in time."""
import json
import sys

from kvcache_sim.plan import build_execution_plan
from kvcache_sim.policies import simulate_ceiling, simulate_policy
from kvcache_sim.trace import parse_trace_lines

for line in sys.stdin:
    case = json.loads(line)
    rows = [json.dumps({"input_length": n, "hash_ids": ids}) for n, ids in case["requests"]]
    plan = build_execution_plan(parse_trace_lines(rows, block_size=case["block_size"]), case["warmup"])
    points = []
    for policy in ("lru", "fifo", "optimal"):
        for capacity in case["capacities"]:
            result = simulate_policy(plan, policy, capacity)
            if result.measurementMode == "fixed_window":
                points.append([policy, capacity, result.hitTokens])
    print(json.dumps({"ceiling": simulate_ceiling(plan).hitTokens, "points": points}))
