//! What goes through, and what its stdin may be.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use moored_containment::EndReason;
use moored_testkit::wait::wait_for_file;
use moored_testkit::{User, bin, example};
use rustix::process::Signal;

use crate::common::{DEADLINE, send};
use crate::{Contain, one_cell, report};

/// Not text, and no multiple of anything.
fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn stdout_is_the_commands_own_and_whole() {
    for contain in Contain::all() {
        let noise = noise((1 << 20) + 7);
        let file = contain.part.scratch.join("noise");
        fs::write(&file, &noise).expect("a file");
        let ran = contain.run([std::path::Path::new("cat"), &file]);
        assert_eq!(ran.status.code(), Some(0));
        assert!(ran.stdout == noise, "{} of {} bytes", ran.stdout.len(), noise.len());
        report(&ran);
    }
}

#[test]
fn what_was_sent_before_the_end_of_stdin_is_answered() {
    for contain in Contain::all() {
        let mut child = contain.command(["cat"]).stdin(Stdio::piped()).spawn().expect("contain");
        let mut stdin = child.stdin.take().expect("a pipe");
        let noise = noise(3 << 20);
        let sent = noise.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&sent));
        let output = child.wait_with_output().expect("our child");
        writer.join().expect("a writer").expect("a reader");
        assert!(output.stdout == noise, "{} of {} bytes", output.stdout.len(), noise.len());
        assert!(report(&output).verified);
        contain.assert_clean();
    }
}

/// Node gives its children sockets for stdio.
#[test]
fn a_socket_is_as_good_as_a_pipe() {
    for contain in Contain::all() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (out, their_out) = UnixStream::pair().expect("a pair");
        let mut command = contain.command([bin("misbehave")]);
        command.args(["--ignore-eof", "--tree", "3", "--ready-file"]).arg(contain.part.scratch.join("ready"));
        command.stdin(std::os::fd::OwnedFd::from(theirs)).stdout(std::os::fd::OwnedFd::from(their_out));
        let child = command.spawn().expect("contain");
        // It keeps copies of their ends.
        drop(command);
        wait_for_file(&contain.part.scratch.join("ready"), DEADLINE);
        let (mut ours, mut out) = (ours, out);
        ours.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n").expect("a reader");
        let mut answer = [0; 64];
        let count = out.read(&mut answer).expect("an answer");
        assert!(String::from_utf8_lossy(&answer[..count]).contains("\"id\":7"));
        drop(ours);
        let output = child.wait_with_output().expect("our child");
        assert_eq!(report(&output).reason, EndReason::Requested);
        contain.assert_clean();
    }
}

/// A file has no other end that could be closed: the command's own end is the end.
#[test]
fn a_file_and_dev_null_are_read_to_their_end() {
    for contain in Contain::all() {
        let file = contain.part.scratch.join("input");
        fs::write(&file, noise(100_000)).expect("a file");
        for (path, length) in [(file.as_path(), 100_000), (std::path::Path::new("/dev/null"), 0)] {
            let input = File::open(path).expect("a file");
            let output = contain.command(["cat"]).stdin(input).output().expect("contain");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(0), length));
            assert_eq!(report(&output).reason, EndReason::ServerExited);
        }
        // Nor does it end while the command goes on.
        let slow = ["sh", "-c", "cat >/dev/null; sleep 0.3; exit 4"];
        let output = contain.command(slow).stdin(Stdio::null()).output().expect("contain");
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        contain.assert_clean();
    }
}

/// With stdin closed altogether, its number must not be taken by something else.
#[test]
fn a_closed_stdin_does_no_harm() {
    for contain in Contain::all() {
        let program = example("moored-containment", "contain").display().to_string();
        let mut argv = vec!["-c".to_owned(), r#"exec "$@" <&-"#.into(), "sh".into(), program];
        argv.extend(contain.cell.1.contain_options().iter().map(ToString::to_string));
        argv.extend(["--", "sh", "-c", "readlink /proc/$$/fd/0; exit 6"].map(String::from));
        let output = contain.part.set(contain.part.wrap().command("sh", argv)).output().expect("sh");
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        let input = String::from_utf8_lossy(&output.stdout);
        assert!(["", "/dev/null\n"].contains(&&*input), "the command reads from `{input}`");
        contain.assert_clean();
    }
}

/// `script` gives it a terminal.
fn on_a_terminal(contain: &Contain, line: &str) -> Command {
    let program = example("moored-containment", "contain").display().to_string();
    let options = contain.cell.1.contain_options().join(" ");
    let line = format!("exec {program} {options} -- {line}");
    let mut command = contain.part.set(contain.part.wrap().command("script", ["-qec", &line, "/dev/null"]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn on_a_terminal_it_reads_what_is_typed() {
    for contain in Contain::all() {
        let line = "sh -c 'read line; echo got $line; exit 5'";
        let mut child = on_a_terminal(&contain, line).spawn().expect("script");
        child.stdin.as_mut().expect("a pipe").write_all(b"typed\n").expect("a reader");
        let output = child.wait_with_output().expect("our child");
        let words = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(5), "{words}");
        assert!(words.contains("got typed") && words.contains("\"verified\":true"), "{words}");
        contain.assert_clean();
    }
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    for user in User::available() {
        let contain = Contain::new(one_cell(user));
        let ready = contain.part.scratch.join("ready");
        let line = format!(
            "{} --ignore-eof --tree 3 --daemon --ready-file {}",
            bin("misbehave").display(),
            ready.display()
        );
        let mut child = on_a_terminal(&contain, &line).spawn().expect("script");
        wait_for_file(&ready, DEADLINE);
        let script = moored_containment::ProcessIdentity::of(child.id()).expect("our child");
        assert!(send(&script, Signal::KILL));
        child.wait().expect("our child");
        contain.assert_clean();
    }
}

#[test]
fn ctrl_c_on_a_terminal_ends_it() {
    for user in User::available() {
        let contain = Contain::new(one_cell(user));
        let ready = contain.part.scratch.join("ready");
        let line = format!("{} --ignore-eof --ready-file {}", bin("misbehave").display(), ready.display());
        let mut child = on_a_terminal(&contain, &line).spawn().expect("script");
        wait_for_file(&ready, DEADLINE);
        child.stdin.as_mut().expect("a pipe").write_all(b"\x03").expect("a reader");
        let output = child.wait_with_output().expect("our child");
        let words = String::from_utf8_lossy(&output.stdout);
        assert!(words.contains("\"reason\":\"requested\""), "{words}");
        contain.assert_clean();
    }
}
