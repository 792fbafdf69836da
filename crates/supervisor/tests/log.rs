//! A server's stderr, on real files.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use moored_supervisor::event::RunId;
use moored_supervisor::log::{self, Limits, ServerLog};
use moored_supervisor::places::StateDir;
use moored_testkit::{Scratch, User, wait_until};
use proptest::prelude::*;

const LONG: Duration = Duration::from_secs(60);

fn small(file_bytes: u64) -> Limits {
    Limits { file_bytes, ..Limits::default() }
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("a file")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Waits until the log has come to disk; it stays open.
fn wait_for(path: &Path, ending: &str) {
    wait_until("it is written", LONG, || fs::read_to_string(path).ok()?.ends_with(ending).then_some(()));
}

fn tail(path: &Path, lines: usize) -> String {
    String::from_utf8(log::tail(path, lines).expect("a log").0).expect("text")
}

#[test]
fn what_is_written_is_kept_for_the_user_alone() {
    let scratch = Scratch::for_user(User::current());
    let path = StateDir::at(scratch.path()).log_of("srv", RunId::generate());
    for word in ["one\n", "two\n"] {
        let mut log = ServerLog::open(path.clone(), Limits::default());
        log.write(word.as_bytes());
        assert_eq!(log.finish(LONG), None);
    }
    assert_eq!(text(&path), "one\ntwo\n");
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    let folder = path.parent().expect("a folder");
    assert_eq!(fs::metadata(folder).expect("a folder").permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_log_to_which_nothing_is_written_leaves_no_file() {
    let scratch = Scratch::for_user(User::current());
    let mut log = ServerLog::open(scratch.join("a/b.log"), Limits::default());
    log.write(b"");
    assert_eq!(log.finish(LONG), None);
    assert_eq!(names(scratch.path()), [""; 0]);
}

#[test]
fn a_log_is_rotated_by_size_and_the_oldest_goes() {
    let scratch = Scratch::for_user(User::current());
    let path = scratch.join("x.log");
    let mut log = ServerLog::open(path.clone(), small(10));
    for number in 0..9 {
        log.write(format!("{number}234\n").as_bytes());
    }
    assert_eq!(log.finish(LONG), None);
    assert_eq!(names(scratch.path()), ["x.log", "x.log.1", "x.log.2"]);
    assert_eq!(text(&path), "8234\n");
    assert_eq!(text(scratch.join("x.log.1")), "6234\n7234\n");
    assert_eq!(text(scratch.join("x.log.2")), "4234\n5234\n");
    assert_eq!(tail(&path, 4), "5234\n6234\n7234\n8234\n");
    assert_eq!(tail(&path, 99), "4234\n5234\n6234\n7234\n8234\n");
    assert_eq!(tail(&path, 1), "8234\n");
    assert_eq!(tail(&path, 0), "");
}

#[test]
fn those_that_share_a_file_write_on_where_it_is_after_one_has_rotated_it() {
    let scratch = Scratch::for_user(User::current());
    let path = scratch.join("shared.log");
    let [mut first, mut second] = std::array::from_fn(|_| ServerLog::open(path.clone(), small(12)));
    first.write(b"first 1\n");
    wait_for(&path, "first 1\n");
    second.write(b"second 1\n");
    wait_for(&path, "second 1\n");
    first.write(b"f2\n");
    wait_for(&path, "f2\n");
    assert_eq!(text(&path), "second 1\nf2\n");
    assert_eq!((first.finish(LONG), second.finish(LONG)), (None, None));
}

#[test]
fn old_logs_go_when_a_new_one_is_begun_but_no_live_one_and_nothing_of_others() {
    let scratch = Scratch::for_user(User::current());
    let [old, live, new] = std::array::from_fn(|_| RunId::generate());
    let path = |run: RunId, ending: &str| scratch.join(format!("{run}.{ending}"));
    let mut alive = ServerLog::open(path(live, "log"), Limits::default());
    alive.write(b"alive\n");
    wait_for(&path(live, "log"), "alive\n");
    let others = [scratch.join("mine.log"), path(old, "log.gz")];
    for file in [&path(old, "log"), &path(old, "log.1"), &path(live, "log.1"), &others[0], &others[1]] {
        fs::write(file, "x").expect("a file");
    }
    let long_ago = Timestamp::now() - Duration::from_hours(15 * 24);
    for name in names(scratch.path()) {
        let file = File::options().write(true).open(scratch.join(name)).expect("a file");
        file.set_modified(long_ago.into()).expect("a file of ours");
    }
    let mut log = ServerLog::open(path(new, "log"), Limits::default());
    log.write(b"new\n");
    assert_eq!(log.finish(LONG), None);
    assert!(!path(old, "log").exists() && !path(old, "log.1").exists());
    assert!(path(live, "log").exists() && path(live, "log.1").exists(), "it is in use");
    assert!(others.iter().all(|file| file.exists()), "not named as ours");
    alive.write(b"still\n");
    assert_eq!(alive.finish(LONG), None);
    assert_eq!(text(path(live, "log")), "alive\nstill\n");
}

#[test]
fn the_logs_of_one_server_do_not_take_more_than_their_limit() {
    let scratch = Scratch::for_user(User::current());
    let limits = Limits { folder_bytes: 2000, ..Limits::default() };
    let runs: Vec<RunId> = (0..8)
        .map(|second| {
            let run = RunId::generate();
            let path = scratch.join(format!("{run}.log"));
            let mut log = ServerLog::open(path.clone(), limits);
            log.write(&[b'x'; 600]);
            assert_eq!(log.finish(LONG), None);
            // File systems keep coarse times.
            let at = Timestamp::now() - Duration::from_secs(100 - second);
            File::options()
                .write(true)
                .open(path)
                .expect("a file")
                .set_modified(at.into())
                .expect("a file of ours");
            run
        })
        .collect();
    // The limit is kept when one is begun, so what was written since is over it.
    let mut newest: Vec<RunId> = runs[4..].to_vec();
    newest.sort();
    let left: Vec<RunId> =
        log::all(scratch.path()).expect("a folder").into_iter().map(|(run, _)| run).collect();
    assert_eq!(left, newest);
}

#[test]
fn a_place_that_cannot_be_written_costs_one_warning() {
    let scratch = Scratch::for_user(User::current());
    let file = scratch.join("file");
    fs::write(&file, "").expect("a file");
    let mut log = ServerLog::open(file.join("x.log"), Limits::default());
    log.write(b"one\n");
    log.write(b"two\n");
    let warning = log.finish(LONG).expect("a warning");
    assert!(warning.starts_with("stderr could not be written to"), "{warning}");
}

/// A file that takes for ever to open, as on a file server that is gone, until somebody reads it.
fn hanging_file(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
}

#[test]
fn a_disk_that_hangs_holds_nobody_up_and_the_log_says_what_is_missing() {
    let scratch = Scratch::for_user(User::current());
    let path = scratch.join("x.log");
    hanging_file(&path);
    let mut log = ServerLog::open(path.clone(), Limits::default());
    for _ in 0..4096 {
        log.write(&[b'x'; 1024]);
    }
    let reader = std::thread::spawn(move || fs::read_to_string(path).expect("the pipe"));
    assert_eq!(log.finish(LONG), None);
    let read = reader.join().expect("what came");
    let (kept, dropped) = (1 << 20, 3 << 20);
    assert_eq!(read.trim_start_matches('x').len(), read.len() - kept);
    let said = format!("\n[moored: {dropped} bytes were dropped here: the disk was too slow]\n");
    assert_eq!(&read[kept..], said);
}

#[test]
fn the_end_waits_for_a_disk_no_longer_than_its_patience() {
    let scratch = Scratch::for_user(User::current());
    hanging_file(&scratch.join("x.log"));
    let mut log = ServerLog::open(scratch.join("x.log"), Limits::default());
    log.write(b"four");
    assert_eq!(log.finish(Duration::ZERO).as_deref(), Some("4 bytes of stderr could not be written in time"));
}

#[test]
fn a_log_that_is_not_there_yet_is_followed_from_its_beginning() {
    let scratch = Scratch::for_user(User::current());
    let path = scratch.join("x.log");
    let (before, mut follow) = log::tail(&path, 10).expect("no log is an empty one");
    assert!(before.is_empty() && follow.read().expect("nothing").is_empty());
    fs::write(&path, "one\n").expect("a file");
    assert_eq!(follow.read().expect("what came"), b"one\n");
    assert!(follow.read().expect("nothing").is_empty());
}

fn lines_of(all: &[u8], count: usize) -> Vec<u8> {
    let lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
    lines[lines.len().saturating_sub(count)..].concat()
}

/// Writes through a log of its own, so that all of it is there afterwards.
fn write(path: &Path, chunk: &[u8], limits: Limits) {
    let mut log = ServerLog::open(path.to_owned(), limits);
    log.write(chunk);
    assert_eq!(log.finish(LONG), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_last_lines_and_what_follows_are_all_there_is_over_any_rotation(
        chunks in proptest::collection::vec("[a-c\n]{1,30}", 1..12),
        looks in proptest::collection::vec(any::<bool>(), 12),
        shown in 0..6_usize,
        begin in 0..12_usize,
    ) {
        let scratch = Scratch::for_user(User::current());
        let path = scratch.join("x.log");
        // As many files as there can be rotations: nothing is lost.
        let limits = Limits { file_bytes: 40, files: 20, ..Limits::default() };
        let (before, after) = chunks.split_at(begin.min(chunks.len()));
        before.iter().for_each(|chunk| write(&path, chunk.as_bytes(), limits));
        let (last, mut follow) = log::tail(&path, shown).expect("a log");
        prop_assert_eq!(last, lines_of(before.concat().as_bytes(), shown));
        let mut came = Vec::new();
        for (chunk, look) in after.iter().zip(looks) {
            write(&path, chunk.as_bytes(), limits);
            if look {
                came.extend(follow.read().expect("what came"));
            }
        }
        came.extend(follow.read().expect("what came"));
        prop_assert_eq!(came, after.concat().into_bytes());
    }
}
