//! All cells, or a pairwise cover of them: every escape in every ending, each setting with every escape and with every
//! ending. `MOORED_TEST_FULL=1` plays the whole product.
//!
//! Each test plays the cells of its setting one after the other, whatever becomes of them, and tells at the end how many
//! there were and which was the slowest; `MOORED_MATRIX_LOG` names a file that gets the same as a line of JSON.

use std::cell::Cell as Flag;
use std::fs::File;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use moored_testkit::{User, in_time, pairwise, wait_until};
use serde_json::json;

use crate::cell::{Cell, Kept};
use crate::endings::{Cause, ENDINGS};
use crate::escapes::ESCAPES;
use crate::setting::{CGROUP, LOOP, Layers, SEALED, SEALED_CGROUP, SETTINGS, STRICT, STRICT_CGROUP, Setting};
use crate::stage::list;

/// Who adopted the dead may take its time to reap them; pid 1 of some containers looks once a second.
const REAPED_WITHIN: Duration = Duration::from_secs(20);

#[test]
fn root_loop_every_escape_in_every_ending() {
    play(User::Root, LOOP);
}

#[test]
fn root_cgroup_every_escape_in_every_ending() {
    play(User::Root, CGROUP);
}

#[test]
fn root_strict_every_escape_in_every_ending() {
    play(User::Root, STRICT);
}

#[test]
fn root_strict_cgroup_every_escape_in_every_ending() {
    play(User::Root, STRICT_CGROUP);
}

#[test]
fn plain_loop_every_escape_in_every_ending() {
    play(User::Plain, LOOP);
}

#[test]
fn plain_cgroup_every_escape_in_every_ending() {
    play(User::Plain, CGROUP);
}

#[test]
fn plain_sealed_every_escape_in_every_ending() {
    play(User::Plain, SEALED);
}

#[test]
fn plain_strict_every_escape_in_every_ending() {
    play(User::Plain, STRICT);
}

#[test]
fn plain_sealed_cgroup_every_escape_in_every_ending() {
    play(User::Plain, SEALED_CGROUP);
}

fn play(user: User, layers: Layers) {
    let setting = Setting { user, layers };
    if let Some(why) = setting.unavailable() {
        eprintln!("matrix {setting}: left out, {why}");
        return;
    }
    let began = Instant::now();
    let mut tally = Tally::default();
    for cell in cells(setting) {
        // Late twice is a fault; left behind once is one, too.
        match caught(|| in_time(cell.bound(), |kept: &Kept| kept.took, || cell.play())) {
            Ok(kept) => tally.kept.push((cell, kept)),
            Err(words) => tally.broken.push(format!("{cell}: {words}")),
        }
    }
    tally.broken.extend(tally.kept.iter().filter_map(|(cell, kept)| unreaped(cell, kept)));
    tally.tell(setting, began.elapsed());
    assert!(tally.broken.is_empty(), "{} broken:\n\n{}", tally.broken.len(), tally.broken.join("\n\n"));
}

/// The cells of one setting. The cover is computed over all settings, so that together they meet every pair.
fn cells(setting: Setting) -> Vec<Cell> {
    let levels = [SETTINGS.len(), ESCAPES.len(), ENDINGS.len()];
    let allowed = |part: &[Option<usize>]| is_possible(part[0], part[1], part[2]);
    let full = std::env::var("MOORED_TEST_FULL").is_ok_and(|value| value == "1");
    let chosen = if full { pairwise::every(&levels, allowed) } else { pairwise::pairs(&levels, allowed) };
    let cell =
        |c: &Vec<usize>| Cell { setting: SETTINGS[c[0]], escape: &ESCAPES[c[1]], ending: &ENDINGS[c[2]] };
    chosen.iter().map(cell).filter(|cell| cell.setting == setting).collect()
}

/// A setting that can be had here, and a server that can do what the ending asks of it.
fn is_possible(setting: Option<usize>, escape: Option<usize>, ending: Option<usize>) -> bool {
    let available = setting.is_none_or(|at| SETTINGS[at].unavailable().is_none());
    let stays = escape.is_some_and(|at| !ESCAPES[at].can_exit);
    available && !(stays && ending.is_some_and(|at| ENDINGS[at].cause == Cause::Server))
}

/// What it returns, or what it panicked with. The tally shows that at the end, so it is not shown at once.
fn caught<T>(play: impl FnOnce() -> T) -> Result<T, String> {
    thread_local!(static IS_CAUGHT: Flag<bool> = const { Flag::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                usual(info)
            }
        }));
    });
    IS_CAUGHT.set(true);
    let played = catch_unwind(AssertUnwindSafe(play));
    IS_CAUGHT.set(false);
    played.map_err(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        said.or_else(|| panic.downcast_ref::<&str>().map(|&said| said.to_owned())).unwrap_or_default()
    })
}

/// Whoever adopted the dead of this cell must have reaped them in the end: a zombie has a pid, too.
fn unreaped(cell: &Cell, kept: &Kept) -> Option<String> {
    let none_left = || kept.mark.alive_and_zombies().is_empty().then_some(());
    let waited = caught(|| wait_until("the dead are reaped", REAPED_WITHIN, none_left));
    waited.is_err().then(|| format!("{cell}: nobody reaped\n{}", list(&kept.mark.alive_and_zombies())))
}

#[derive(Default)]
struct Tally {
    kept: Vec<(Cell, Kept)>,
    broken: Vec<String>,
}

impl Tally {
    fn tell(&self, setting: Setting, whole: Duration) {
        let cells = self.kept.len() + self.broken.len();
        let slowest = self.kept.iter().max_by_key(|(_, kept)| kept.took);
        let (millis, cell) = slowest.map_or((0, String::new()), |(cell, kept)| {
            (kept.took.as_millis(), format!("{}, {}", cell.escape.name, cell.ending.name))
        });
        let failed = self.broken.len();
        eprintln!("matrix {setting}: {cells} cells, {failed} failed, slowest {millis} ms ({cell})");
        let Some(path) = std::env::var_os("MOORED_MATRIX_LOG") else { return };
        let line = json!({
            "matrix": setting.to_string(), "cells": cells, "failed": failed, "slowest_ms": millis,
            "slowest": cell, "seconds": whole.as_secs_f64(),
        });
        let log = File::options().append(true).create(true).open(path);
        // In one piece: other tests write to it at the same time.
        log.and_then(|mut log| log.write_all(format!("{line}\n").as_bytes())).expect("MOORED_MATRIX_LOG");
    }
}
