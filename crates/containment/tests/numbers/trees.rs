//! One session with very many processes.

use std::time::{Duration, Instant};

use moored_testkit::User;

use crate::common::ending::Ending;
use crate::common::hold::{Cell, Hold, cells, cells_with};
use crate::common::host::Plan;
use crate::common::traces::assert_nothing_left;

/// Takes SIGKILL to be gone.
const STUBBORN: [&str; 3] = ["--ignore-eof", "--ignore-term", "--tree-ignores-term"];

fn a_tree_ends(cell: Cell, size: usize) {
    let tree = ["--tree".to_owned(), (size - 1).to_string()];
    let switches = STUBBORN.map(str::to_owned).into_iter().chain(tree);
    let mut host = Plan::new(cell, Ending::End).misbehave(switches).start();
    assert_eq!(host.pids().len(), size);
    let began = Instant::now();
    host.bring_end();
    let report = host.report().expect("a report");
    let took = began.elapsed();
    assert!(report.verified && report.survivors.is_empty(), "{cell:?} {size}: {report:?}");
    assert_nothing_left(&mut host);
    assert!(took < Duration::from_secs(2), "{cell:?}: {size} processes took {took:?}, {report:?}");
}

#[test]
fn heavy_trees_of_one_to_a_thousand_end() {
    for cell in cells() {
        [1, 10, 100, 1000].into_iter().for_each(|size| a_tree_ends(cell, size));
    }
}

#[test]
fn heavy_a_chain_of_hundreds_ends() {
    for cell in cells() {
        let switches = [&STUBBORN[..], &["--chain", "400"]].concat();
        let mut host = Plan::new(cell, Ending::Drop).misbehave(switches).start();
        assert_eq!(host.pids().len(), 401);
        host.bring_end();
        assert_nothing_left(&mut host);
    }
}

/// Each lineage replaces itself as fast as it can, in a new session each time, and ignores the polite signals.
fn storms_end(cell: Cell) {
    for round in 0..storms() {
        let ending = [Ending::Kill, Ending::HostKilled][round % 2];
        let storm = ["--storm", "100", "--ignore-eof", "--ignore-term"];
        let mut host = Plan::new(cell, ending).misbehave(storm).start();
        host.bring_end();
        assert_nothing_left(&mut host);
        if let Some(report) = host.report() {
            assert!(report.verified && report.survivors.is_empty(), "{cell:?} {round}: {report:?}");
        }
    }
}

/// A storm takes most of its time to rise, some ten seconds where there are two cores.
fn storms() -> usize {
    if std::env::var_os("MOORED_TEST_FULL").is_some() { 10 } else { 1 }
}

#[test]
fn heavy_storms_in_the_loop_leave_nobody() {
    storms_end((User::Plain, Hold::Loop));
}

#[test]
fn heavy_storms_in_a_leaf_leave_nobody() {
    cells_with(Hold::Cgroup).into_iter().take(1).for_each(storms_end);
}

#[test]
fn heavy_sealed_storms_leave_nobody() {
    cells_with(Hold::Sealed).into_iter().for_each(storms_end);
}

#[test]
fn heavy_strict_storms_leave_nobody() {
    cells_with(Hold::Strict).into_iter().for_each(storms_end);
}
