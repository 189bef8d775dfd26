"""The nodes of the DAG: Prefect tasks, one task run per shard, truth in the manifest.

No caching and no persisted results: with persistence on, identical inputs would collapse replicates into one. No retries either:
what is retried (a call, a verification) is retried inside the shard, where it is counted.
"""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from tasks.analyse import analyse
from tasks.judge import judge_shard
from tasks.load import write_tasks
from tasks.plan import Shard
from tasks.preflight import run_preflight
from tasks.probes import probe_judge
from tasks.record import record_source
from tasks.reverify import reverify_shard
from tasks.shard import measure_shard
from tasks.successor import take_over
from tasks.workshop import workshop


@task(name="freeze", task_run_name="freeze {digest:.12}", cache_policy=NO_CACHE, persist_result=False)
def freeze_node(digest: str) -> None:
    """Write the protocol, before anything is called."""
    shop = workshop(digest)
    shop.store.freeze(shop.plan.protocol)


@task(name="inherit", task_run_name="inherit from {predecessor:.12}", cache_policy=NO_CACHE, persist_result=False)
def inherit_node(root: str, study: str, digest: str, predecessor: str) -> None:
    """Take over what a successor's predecessor has sealed and journalled."""
    take_over(root, study, digest, predecessor)


@task(name="load tasks", task_run_name="load tasks", cache_policy=NO_CACHE, persist_result=False)
def load_node(digest: str) -> None:
    """Seal the benchmark's tasks."""
    write_tasks(workshop(digest))


@task(name="preflight", task_run_name="preflight {stack}", cache_policy=NO_CACHE, persist_result=False)
def preflight_node(digest: str, stack: str) -> None:
    """Run every canonical solution through the stack's verifier."""
    run_preflight(workshop(digest), stack)


@task(name="measure", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def measure_node(digest: str, name: str, shard: Shard, last_chance: bool) -> None:  # noqa: ARG001, FBT001 - a task run's name
    """Generate, verify and settle one shard of cells."""
    measure_shard(workshop(digest), shard, last_chance=last_chance)


@task(name="reverify", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def reverify_node(digest: str, name: str, shard: Shard, last_chance: bool) -> None:  # noqa: ARG001, FBT001 - a task run's name
    """Verify one shard of frozen candidates again."""
    reverify_shard(workshop(digest), shard, last_chance=last_chance)


@task(name="record", task_run_name="record {stack} {condition}", cache_policy=NO_CACHE, persist_result=False)
def record_node(digest: str, stack: str, condition: str) -> None:
    """Make the recording that a replay condition replays."""
    record_source(workshop(digest), stack, condition)


@task(name="judge", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def judge_node(digest: str, name: str, shard: Shard, last_chance: bool) -> None:  # noqa: ARG001, FBT001 - a task run's name
    """Judge one shard of frozen candidates."""
    judge_shard(workshop(digest), shard, last_chance=last_chance)


@task(name="probes", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def probes_node(digest: str, name: str, shard: Shard, last_chance: bool) -> None:  # noqa: ARG001, FBT001 - a task run's name
    """Put its probes to one judge condition."""
    probe_judge(workshop(digest), shard, last_chance=last_chance)


@task(name="analyse", task_run_name="analyse", cache_policy=NO_CACHE, persist_result=False)
def analyse_node(digest: str) -> None:
    """Estimates, contrasts, budgets and checks; then the catalog."""
    analyse(workshop(digest))
