//! What lies in the folder of records and is not to be acted on.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::{BootId, ProcessIdentity, RuntimeDir, SweepReport, sweep};
use moored_testkit::{Bystander, Scratch, User};

use crate::common::traces::names;

/// A record as a dead session of a dead owner would have left it, if `boot` is now.
fn record(boot: &str, process: &ProcessIdentity, more: &str) -> String {
    let id = "2123456bffffffff";
    let ProcessIdentity { pid, start_ticks, .. } = process;
    let namespace = fs::metadata("/proc/self/ns/pid").expect("/proc").ino();
    format!(
        "moored-session 1\nid {id}\nboot {boot}\nowner {pid} {}\nstarted 1\npidns {namespace}\nlabel x\n\
         process {pid} {start_ticks}\n{more}",
        start_ticks - 1
    )
}

fn folder() -> (Scratch, RuntimeDir) {
    let scratch = Scratch::for_user(User::current());
    let folder = RuntimeDir::at(scratch.join("run")).expect("a new folder");
    (scratch, folder)
}

#[test]
fn a_record_of_another_boot_is_only_removed() {
    let (scratch, folder) = folder();
    let mut stranger = Bystander::spawn();
    let process = ProcessIdentity::of(stranger.pid()).expect("it lives");
    let trace = scratch.join("trace");
    let on_end = format!("on_end /usr/bin/touch\non_end {}\n", trace.display());
    let path = folder.path().join("2123456bffffffff.session");
    fs::write(&path, record(&format!("{:032x}", 7), &process, &on_end)).expect("a file");
    assert_eq!(sweep(&folder).expect("a sweep"), SweepReport::default());
    assert!(!path.exists(), "nothing of it can be left");
    assert!(!trace.exists(), "and what it wanted done is of another time");
    stranger.assert_untouched();
}

/// A record of ours may name anybody: by then the number may be another's. The cookie alone tells who is of the session.
#[test]
fn a_record_is_no_reason_to_touch_anybody_without_the_mark() {
    let (_scratch, folder) = folder();
    let boot = BootId::current().expect("a boot").to_string();
    let mut stranger = Bystander::spawn();
    let process = ProcessIdentity::of(stranger.pid()).expect("it lives");
    let path = folder.path().join("2123456bffffffff.session");
    fs::write(&path, record(&boot, &process, "")).expect("a file");
    let report = sweep(&folder).expect("a sweep");
    let [swept] = &report.sessions[..] else { panic!("{report:?}") };
    assert_eq!((swept.ended.len(), swept.survivors.len()), (0, 0), "{report:?}");
    assert!(!path.exists());
    stranger.assert_untouched();
}

/// The kept one is dead, and its number is another's: nothing to remember any more.
#[test]
fn a_kept_number_that_is_another_process_by_now_is_forgotten() {
    let (_scratch, folder) = folder();
    let boot = BootId::current().expect("a boot").to_string();
    let mut stranger = Bystander::spawn();
    let process = ProcessIdentity::of(stranger.pid()).expect("it lives");
    let path = folder.path().join("2123456bffffffff.session");
    let kept = |ticks: u64| record(&boot, &process, &format!("kept {} {ticks}\nended\n", process.pid));
    fs::write(&path, kept(process.start_ticks)).expect("a file");
    assert_eq!(sweep(&folder).expect("a sweep"), SweepReport::default());
    assert!(path.exists(), "that very process lives");
    fs::write(&path, kept(process.start_ticks - 1)).expect("a file");
    assert_eq!(sweep(&folder).expect("a sweep"), SweepReport::default());
    assert!(!path.exists());
    stranger.assert_untouched();
}

#[test]
fn what_is_no_record_is_left_alone() {
    let (scratch, folder) = folder();
    let elsewhere = scratch.join("elsewhere");
    fs::write(&elsewhere, "a file of somebody's").expect("a file");
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
    put("empty.session", b"");
    put("text.session", b"hello\nworld\n");
    put("bytes.session", &[0xff; 4096]);
    put("half.session", b"moored-session 1\nid 2123456bffffffff\nboot ");
    put("later.session", b"moored-session 2\nid 2123456bffffffff\n");
    put("no-owner.session", b"moored-session 1\nid 2123456bffffffff\nboot 07\nstarted 1\n");
    put("2123456bffffffff.sessions", b"moored-session 1\n");
    put("guardian-0.0.0", b"an image of another version");
    put("notes.txt", b"x");
    fs::create_dir(folder.path().join("folder.session")).expect("a folder");
    symlink(&elsewhere, folder.path().join("link.session")).expect("a link");
    symlink("nowhere", folder.path().join("dangling.session")).expect("a link");
    let before = sorted(folder.path());
    assert_eq!(before.len(), 12);
    assert_eq!(sweep(&folder).expect("a sweep"), SweepReport::default());
    assert_eq!(sorted(folder.path()), before);
    assert_eq!(fs::read_to_string(elsewhere).expect("a file"), "a file of somebody's");
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut names = names(folder);
    names.sort();
    names
}

/// Opening a pipe for reading waits for a writer, unless one asks it not to.
#[test]
fn a_named_pipe_among_the_records_holds_nobody_up() {
    let (_scratch, folder) = folder();
    let pipe = folder.path().join("2123456bffffffff.session");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let (tell, told) = std::sync::mpsc::channel();
    let looking = folder.clone();
    std::thread::spawn(move || tell.send(sweep(&looking).map(|report| report.sessions.len())));
    let swept = told.recv_timeout(Duration::from_secs(20));
    if swept.is_err() {
        // Lets the other thread go: the test has seen enough.
        let _ = fs::OpenOptions::new().write(true).open(&pipe);
    }
    assert_eq!(swept.expect("a sweep that ends").expect("a sweep"), 0);
    assert!(pipe.exists());
}
