"""A table of accounts, each with a lock, and processes that transfer money between them.

A lock brings its data along: whoever holds an account has its balance. A transfer holds two accounts. It takes them in
the order of their names, always, so no two transfers wait for each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import rackmem
from workers import run

FIELDS = [("balance", "i8"), ("transfers", "u8")]
INITIAL = 1000


def transfer(source: rackmem.Locked, target: rackmem.Locked, amount: int) -> bool:
    """Moves money. False if the source has less than that: then nothing happens."""
    first, second = sorted((source, target), key=lambda account: account.name)
    with first.write() as one, second.write() as other:
        payer, payee = (one, other) if first is source else (other, one)
        if payer["balance"] < amount:
            return False
        payer["balance"] -= amount
        payee["balance"] += amount
        payer["transfers"] += 1
        payee["transfers"] += 1
    return True


def work(file: str, seed: int, accounts: int, times: int) -> None:
    """One process: random transfers, and the number of them that succeeded."""
    random = np.random.default_rng(seed)
    with rackmem.join(file) as rack:
        table = [rack.locked(f"account {number:04}", FIELDS, create=False) for number in range(accounts)]
        done = 0
        for _ in range(times):
            source, target = random.choice(accounts, 2, replace=False)
            done += transfer(table[source], table[target], int(random.integers(1, INITIAL)))
        rack.words("done").fetch_add(0, done)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="transfers between accounts on a rack")
    parser.add_argument("--accounts", type=int, default=100)
    parser.add_argument("--transfers", type=int, default=5000, help="that each process tries")
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args(arguments)

    with rackmem.up(nodes=given.workers + 2, seats=given.workers + 1) as rack:
        initial = (INITIAL, 0)
        table = [rack.locked(f"account {number:04}", FIELDS, initial) for number in range(given.accounts)]
        done = rack.words("done", 1)
        run([(work, (rack.file, seed, given.accounts, given.transfers)) for seed in range(given.workers)])

        total = changed = 0
        for account in table:
            with account.read() as row:
                total += int(row["balance"])
                changed += int(row["transfers"])
        if total != INITIAL * given.accounts:
            raise SystemExit(f"there were {INITIAL * given.accounts} in all accounts, and now there are {total}")
        if changed != 2 * done[0]:
            raise SystemExit(f"{done[0]} transfers changed {changed} balances")
        print(f"{done[0]} transfers of {given.workers} processes between {given.accounts} accounts: "
              f"the total is still {total}")


if __name__ == "__main__":
    main()
