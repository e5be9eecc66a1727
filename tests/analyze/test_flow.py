"""Natural loops against graphs worked out by hand."""

from __future__ import annotations

from graphnet.analyze.flow import dominators, innermost_loops, loop_blocks, natural_loops


def test_a_block_that_jumps_to_itself_is_a_loop() -> None:
    assert natural_loops([[1], [1, 2], []]) == {1: {1}}


def test_of_nested_loops_only_the_inner_is_innermost() -> None:
    edges = [[1], [2], [2, 3], [1, 4], []]  # 1: outer header, 2: inner loop, 3: outer latch
    assert natural_loops(edges) == {2: {2}, 1: {1, 2, 3}}
    assert innermost_loops(edges) == [{2}]
    assert loop_blocks(edges) == {1, 2, 3}


def test_branches_inside_a_loop_belong_to_it() -> None:
    edges = [[1], [2, 3], [4], [4], [1, 5], []]
    assert innermost_loops(edges) == [{1, 2, 3, 4}]
    assert dominators(edges) == [-1, 0, 1, 1, 1, 4]


def test_a_cycle_with_two_entries_is_no_natural_loop() -> None:
    assert natural_loops([[1, 2], [2], [1]]) == {}


def test_loops_behind_a_jump_table_are_found() -> None:
    edges: list[list[int]] = [[], [2], [2, 3], [], [4]]  # nothing is known to lead to 1, nor to the loop 4
    assert innermost_loops(edges) == [{2}, {4}]


def test_the_example_of_cooper_harvey_and_kennedy() -> None:
    # Figure 4 of "A Simple, Fast Dominance Algorithm": 6 -> 5, 4; 5 -> 1; 4 -> 2, 3; 1 <-> 2 <-> 3; all by 6.
    edges = [[1, 2], [3], [4, 5], [4], [3, 5], [4]]
    assert dominators(edges) == [-1, 0, 0, 0, 0, 0]


def test_nothing_has_no_loops() -> None:
    assert innermost_loops([]) == []
