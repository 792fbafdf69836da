//! A soak: many sessions with random servers and random ends, several at a time, in one user's folders. In the end nobody
//! is left, this process is no larger than before, and what was written down is what happened.
//!
//! `MOORED_SOAK` is how many sessions there are (60, or 2,000 with `MOORED_TEST_FULL=1`), shared out among the users, and
//! `MOORED_SOAK_SEED` makes the same ones again. `MOORED_SOAK_USER` is `root` or `plain`, for one of both alone.
//!
//! - `cast`: who plays, and how it ends; pure;
//! - `stage`: one session, played to its end;
//! - `books`: whether history agrees.

#![expect(clippy::disallowed_methods, reason = "clients under a mark, which ends what is left of them")]
#![expect(
    clippy::print_stderr,
    reason = "the seed and the figures are what whoever runs a soak wants to know"
)]

mod books;
mod cast;
#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod stage;

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moored_testkit::{User, wait_until};

use cast::{Part, part};
use common::DEADLINE;
use stage::Stage;

/// So many sessions at once.
const AT_ONCE: usize = 4;
/// What this process may have grown by from an early look to the end. The allocator keeps some of what is freed; a
/// kilobyte lost for each of two thousand sessions is more.
const MAY_GROW: u64 = 1 << 20;

#[test]
fn heavy_soak_nothing_is_left_of_random_sessions_with_random_ends() {
    let seed = moored_testkit::dice::seed("MOORED_SOAK_SEED");
    let full = std::env::var_os("MOORED_TEST_FULL").is_some();
    let default = if full { 2000 } else { 60 };
    let count = variable("MOORED_SOAK").map_or(default, |count| usize::try_from(count).expect("a size"));
    let users = users();
    for user in &users {
        soak(&Stage::new(*user), seed, count / users.len());
    }
}

fn soak(stage: &Stage, seed: u64, count: usize) {
    eprintln!("{:?}: {count} sessions, MOORED_SOAK_SEED={seed}", stage.user);
    let parts: Vec<Part> = (0..count).map(|number| part(seed, number)).collect();
    let began = Instant::now();
    // All that is made once has been made when some have been played.
    let early = count / 4;
    let mut faults = play_all(stage, &parts, 0..early);
    let (files, memory) = (open_files(), resident());
    faults.extend(play_all(stage, &parts, early..count));
    let took = began.elapsed();
    let grown = resident().saturating_sub(memory);
    let survivors = faults.len();

    // Whoever is started next buries those who could not say how they ended.
    stage.moored(&["run", "--", "true"]);
    faults.extend(books::faults(stage, &parts));
    faults.extend(left_in(stage).into_iter().map(|path| format!("`{}` is left", path.display())));
    eprintln!(
        "{:?}: {count} sessions in {:.0} s, {survivors} with survivors, {} faults; {files} files then, {} now; \
         {} KiB then, {} more now",
        stage.user,
        took.as_secs_f64(),
        faults.len(),
        open_files(),
        memory >> 10,
        grown >> 10,
    );
    assert!(faults.is_empty(), "MOORED_SOAK_SEED={seed}, {count} sessions:\n{}", faults.join("\n"));
    // The threads that read for a wire end a moment after it.
    wait_until("no more files are open than before", DEADLINE, || (open_files() <= files).then_some(()));
    assert!(grown <= MAY_GROW, "{grown} bytes more than {memory}");
}

/// Plays them, several at a time; what was left of whom.
fn play_all(stage: &Stage, parts: &[Part], range: Range<usize>) -> Vec<String> {
    let (next, faults) = (AtomicUsize::new(range.start), Mutex::new(Vec::new()));
    let slowest = Mutex::new(Duration::ZERO);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(part) = parts[..range.end].get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = stage.play(part);
                    let mut slowest = slowest.lock().expect("no panic");
                    *slowest = played.took.max(*slowest);
                    if !played.survivors.is_empty() {
                        let fault = format!("survivors of {part:?}: {:#?}", played.survivors);
                        faults.lock().expect("no panic").push(fault);
                    }
                }
            });
        }
    });
    eprintln!("{:?}: {range:?} played, the slowest end took {:?}", stage.user, slowest.into_inner());
    faults.into_inner().expect("no panic")
}

/// What lies in the runtime folder, but for the memory of crashes, which is meant to outlive them.
fn left_in(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.runtime_dir()).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_none_or(|ending| ending != "crashes")).collect()
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").expect("our files").count()
}

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("ourselves");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a size");
    let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    kilobytes.expect("a number") << 10
}

fn users() -> Vec<User> {
    let wanted = std::env::var("MOORED_SOAK_USER").ok();
    let is_wanted = |user: &User| match wanted.as_deref() {
        Some("root") => *user == User::Root,
        Some("plain") => *user == User::Plain,
        _ => true,
    };
    User::available().into_iter().filter(is_wanted).collect()
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: no number")))
}
