//! A client within the test, which sees every byte that the server's side writes, and writes whatever it likes.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use moored_testkit::wait_until;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::DEADLINE;

/// One running command, and all that it wrote to stdout.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    chunks: Receiver<Vec<u8>>,
    /// Every byte so far.
    seen: Vec<u8>,
    /// How much of it has been read as lines.
    read: usize,
    /// Up to where there is no further end of a line.
    searched: usize,
}

impl Wire {
    /// Starts it with pipes for stdin and stdout; stderr is as it was set.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a program");
        let stdin = child.stdin.take();
        let mut stdout = child.stdout.take().expect("a pipe");
        let (tell, chunks) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if tell.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, chunks, seen: Vec::new(), read: 0, searched: 0 }
    }

    /// Writes these bytes as they are.
    #[track_caller]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).expect("a reader");
    }

    /// The same, for when there may be no reader.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stdin.as_mut().expect("an open stdin").write_all(bytes)
    }

    /// Whether nobody can read any more what we would write.
    pub(crate) fn is_unread(&self) -> bool {
        let stdin = self.stdin.as_ref().expect("an open stdin");
        let mut fds = [PollFd::new(stdin, PollFlags::empty())];
        poll(&mut fds, Some(&Timespec::default())).expect("a pipe") > 0
            && fds[0].revents().contains(PollFlags::ERR)
    }

    pub(crate) fn write_line(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// The next whole line, without its end; `None` at the end of all.
    #[track_caller]
    pub(crate) fn read_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.seen[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.seen[self.read..self.searched + end].to_vec();
                self.read = self.searched + end + 1;
                self.searched = self.read;
                return Some(line);
            }
            self.searched = self.seen.len();
            match self.chunks.recv_timeout(DEADLINE) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("nothing came: {}", self.text()),
            }
        }
    }

    /// Reads lines until that one which answers `id`.
    #[track_caller]
    pub(crate) fn answer_to(&mut self, id: &Value) -> Value {
        loop {
            let line = self.read_line().unwrap_or_else(|| panic!("it ended before {id}: {}", self.text()));
            match serde_json::from_slice::<Value>(&line) {
                Ok(answer) if answer.get("id") == Some(id) && answer.get("method").is_none() => {
                    return answer;
                }
                _ => {}
            }
        }
    }

    /// Asks, and reads until the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.write_line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.answer_to(&id.into())
    }

    /// Calls the tool `echo`, and checks what it says.
    #[track_caller]
    pub(crate) fn assert_echo(&mut self, id: u64, text: &str) {
        let answer = self.ask(id, "tools/call", json!({ "name": "echo", "arguments": { "text": text } }));
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
    }

    #[track_caller]
    pub(crate) fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "wire", "version": "1" },
        });
        let answer = self.ask(0, "initialize", params);
        self.write_line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes stdin, and waits for the end: how it was, and every byte that ever came.
    #[track_caller]
    pub(crate) fn finish(mut self) -> (ExitStatus, Vec<u8>) {
        self.close_stdin();
        while self.read_line().is_some() {}
        let status = self.exit();
        (status, std::mem::take(&mut self.seen))
    }

    #[track_caller]
    pub(crate) fn exit(&mut self) -> ExitStatus {
        wait_until("it has ended", DEADLINE, || self.child.try_wait().expect("our child"))
    }

    /// Whether nothing comes for so long.
    pub(crate) fn is_silent_for(&mut self, span: Duration) -> bool {
        match self.chunks.recv_timeout(span) {
            Ok(chunk) => {
                self.seen.extend(chunk);
                false
            }
            Err(_) => true,
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // Our own unreaped child; a scene's guard ends the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
