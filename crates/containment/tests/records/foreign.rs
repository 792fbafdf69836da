//! What lies in the folder of records and is not to be acted on.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::{
    Command, Layer, ProcessIdentity, ProcessTable, Recording, RuntimeDir, Stdio, SweepReport, Use, sweep,
};
use moored_testkit::{Bystander, Scratch, User};
use rustix::process::Signal;

use crate::common::send;
use crate::common::traces::{names, records, wait_until_stopped};

/// The record of a real session that has ended, with another owner, boot or process.
struct Forged {
    path: PathBuf,
    text: String,
}

impl Forged {
    fn new(folder: &RuntimeDir) -> Self {
        let mut command = Command::new("cat");
        command.stdin(Stdio::Pipe).layer(Layer::Cgroup, Use::Off).recording(Recording::In(folder.clone()));
        let server = command.spawn().expect("cat");
        let [path] = &records(folder.path())[..] else { panic!("one session") };
        let text = fs::read_to_string(path).expect("a record");
        drop(server);
        assert!(!path.exists());
        let without_processes = text.lines().filter(|line| !line.starts_with("process "));
        let text = without_processes.map(|line| format!("{line}\n")).collect();
        Self { path: path.clone(), text }
    }

    /// Another value for a key that is there.
    fn with(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        let old =
            self.text.lines().find(|line| line.starts_with(&format!("{key} "))).expect("a key").to_owned();
        self.text = self.text.replace(&format!("{old}\n"), &format!("{key} {value}\n"));
        self
    }

    /// One more line.
    fn and(mut self, line: impl std::fmt::Display) -> Self {
        self.text += &format!("{line}\n");
        self
    }

    fn write(self) -> PathBuf {
        fs::write(&self.path, self.text).expect("our folder");
        self.path
    }
}

/// Somebody who is not of any session, and the number as a record has it.
fn stranger() -> (Bystander, u32, u64) {
    let stranger = Bystander::spawn();
    let identity = ProcessIdentity::of(stranger.pid()).expect("it lives");
    (stranger, identity.pid, identity.start_ticks)
}

fn folder() -> (Scratch, RuntimeDir) {
    let scratch = Scratch::for_user(User::current());
    let folder = RuntimeDir::at(scratch.join("run")).expect("a new folder");
    (scratch, folder)
}

#[test]
fn a_record_of_another_boot_is_only_removed() {
    let (scratch, folder) = folder();
    let (mut stranger, pid, ticks) = stranger();
    let trace = scratch.join("trace");
    let forged =
        Forged::new(&folder).with("boot", format!("{:032x}", 7)).with("owner", format!("{pid} {ticks}"));
    let forged = forged.and(format!("on_end /usr/bin/touch\non_end {}", trace.display()));
    let path = forged.and(format!("process {pid} {ticks}")).write();
    assert_eq!(sweep(&folder).expect("a sweep"), SweepReport::default());
    assert!(!path.exists(), "nothing of it can be left");
    assert!(!trace.exists(), "and what it wanted done is of another time");
    stranger.assert_untouched();
}

/// A record may name anybody: by now the number may be another's. The cookie alone tells who is of the session.
#[test]
fn a_record_is_no_reason_to_touch_anybody_without_the_mark() {
    let (_scratch, folder) = folder();
    let (mut stranger, pid, ticks) = stranger();
    let forged = Forged::new(&folder).with("owner", format!("{pid} {}", ticks - 1)).with("started", 1);
    let path = forged.and(format!("process {pid} {ticks}")).write();
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
    let (mut stranger, pid, ticks) = stranger();
    let ended = |kept: u64| {
        let forged = Forged::new(&folder).with("owner", format!("{pid} {}", ticks - 1));
        forged.and(format!("kept {pid} {kept}")).and("ended").write()
    };
    let path = ended(ticks);
    assert_eq!(sweep(&folder).expect("a sweep"), SweepReport::default());
    assert!(path.exists(), "that very process lives");
    fs::remove_file(path).expect("ours");
    let path = ended(ticks - 1);
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

/// Somebody else holds the lock of a record whose owner is dead, and names a stopped process for its guardians: that one is
/// somebody's job in the background, and stays so.
#[test]
fn a_stopped_stranger_on_record_is_not_set_going() {
    let (_scratch, folder) = folder();
    let (_stranger, pid, ticks) = stranger();
    let stopped = ProcessIdentity::of(pid).expect("it lives");
    assert!(send(&stopped, Signal::STOP));
    wait_until_stopped(stopped);
    let forged = Forged::new(&folder).with("owner", format!("{pid} {}", ticks + 1));
    let line = format!("process {pid} {ticks}");
    let path = forged.and(&line).and(&line).and(&line).write();
    let held = fs::File::open(&path).expect("the record");
    held.lock().expect("a lock");
    sweep(&folder).expect("a sweep");
    let table = ProcessTable::read().expect("a table");
    assert_eq!(table.get(&stopped).map(|process| process.state), Some('T'));
}
