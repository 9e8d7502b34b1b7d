"""A block-exact replica of vLLM's V1 block pool: free queue, hash map, reference counts.

The rules (``v1/core/block_pool.py``, ``v1/core/single_type_kv_cache_manager.py``):

* one free queue; new blocks come from its head, released ones go to its tail (from 0.24.0 blocks
  without a hash go to the head); the blocks of a request are released last block first;
* a released block keeps its hash until it is taken again: that is the only eviction;
* a hit takes the block out of the queue and raises its reference count;
* block 0 is the null block and never handed out.

The queue is a doubly linked list in two integer lists: a hit has to leave it from the middle.
"""

NO_HASH = -1
HEAD_FIRST = (0, 24, 0)
"""From this release on, released blocks without a hash are used before all others."""


class BlockPool:
    """Blocks by number; hashes are integers, equal for equal prefixes.

    Attributes:
        free: blocks in the queue.
        evictions: blocks that were taken while they still had a hash.
    """

    __slots__ = ("_cached", "_hash", "_head_first", "_next", "_prev", "_ref", "evictions", "free")

    def __init__(self, blocks: int, *, head_first: bool = True) -> None:
        """Set up a pool in which no block was ever used.

        Args:
            blocks: as vLLM counts them, the null block included.
            head_first: whether released blocks without a hash go to the head (0.24.0+).
        """
        self._next = list(range(1, blocks + 1))
        self._prev = list(range(-1, blocks - 1))
        # Block 0, never handed out, is the queue's anchor: its next is the head, its prev the tail.
        self._next[blocks - 1] = 0
        self._prev[0] = blocks - 1
        self._ref = [0] * blocks
        self._hash = [NO_HASH] * blocks
        self._cached: dict[int, int | list[int]] = {}
        self._head_first = head_first
        self.free = blocks - 1
        self.evictions = 0

    def lookup(self, hashes: list[int], limit: int) -> list[int]:
        """Return the blocks of the longest cached prefix of at most `limit` blocks."""
        found = []
        cached = self._cached
        for value in hashes[:limit]:
            block = cached.get(value)
            if block is None:
                break
            found.append(block if isinstance(block, int) else block[0])
        return found

    def idle(self, blocks: list[int]) -> int:
        """Count those of the blocks that stand in the free queue."""
        ref = self._ref
        return sum(1 for block in blocks if not ref[block])

    def touch(self, blocks: list[int]) -> None:
        """Reference blocks that were hit."""
        ref, after, before = self._ref, self._next, self._prev
        for block in blocks:
            if not ref[block]:
                left, right = before[block], after[block]
                after[left] = right
                before[right] = left
                self.free -= 1
            ref[block] += 1

    def allocate(self, count: int) -> list[int]:
        """Take blocks from the head of the queue; the caller has checked that there are enough."""
        taken = []
        after, before = self._next, self._prev
        hashes, ref = self._hash, self._ref
        block = after[0]
        for _ in range(count):
            taken.append(block)
            ref[block] = 1
            if hashes[block] != NO_HASH:
                self._forget(block)
            block = after[block]
        after[0] = block
        before[block] = 0
        self.free -= count
        return taken

    def take(self) -> int:
        """Take one block from the head: what a decoding request needs, the most frequent of all."""
        after = self._next
        block = after[0]
        right = after[block]
        after[0] = right
        self._prev[right] = 0
        self._ref[block] = 1
        if self._hash[block] != NO_HASH:
            self._forget(block)
        self.free -= 1
        return block

    def register(self, block: int, value: int) -> None:
        """Give a full block its hash; it may be hit from now on."""
        self._hash[block] = value
        known = self._cached.get(value)
        if known is None:
            self._cached[value] = block
        elif isinstance(known, int):
            self._cached[value] = [known, block]
        else:
            known.append(block)

    def release(self, blocks: list[int]) -> None:
        """Drop one reference of each block of a request, its last block first."""
        ref, hashes = self._ref, self._hash
        after, before = self._next, self._prev
        for block in reversed(blocks):
            ref[block] -= 1
            if ref[block]:
                continue
            if self._head_first and hashes[block] == NO_HASH:
                left, right = 0, after[0]
            else:
                left, right = before[0], 0
            after[left] = block
            before[block] = left
            after[block] = right
            before[right] = block
            self.free += 1

    def queue(self) -> list[int]:
        """Return the free blocks, head first (for tests and for people)."""
        found = []
        block = self._next[0]
        while block:
            found.append(block)
            block = self._next[block]
        return found

    def _forget(self, block: int) -> None:
        value = self._hash[block]
        self._hash[block] = NO_HASH
        self.evictions += 1
        known = self._cached.pop(value)
        if isinstance(known, int):
            return
        known.remove(block)
        self._cached[value] = known if len(known) > 1 else known[0]
