//! What the bytes mean to the session: the part of the driver that sees every message.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::aside::{Aside, look_for_readers};
use super::driver::{CatchingUp, Driver, Held};
use super::info::server_info;
use super::pump::{Moved, Side};
use super::state::{Event, State};
use crate::boot_time::{since_boot, ticks_since_boot};
use crate::event::What;
use crate::mcp::{Failure, ServerSaid, Step, error_line, info_tool};
use crate::on_thread::on_thread;
use crate::relay::{Bytes, Envelope, Piece, Splitter};

/// More than this is not kept for a server that is still to come.
const HELD: usize = 1 << 20;

impl Driver {
    pub(super) fn moved(&mut self, moved: Moved) {
        match moved {
            Moved::FromClient(read) => self.read_client(read),
            Moved::ClientEof => self.client_eof(),
            Moved::FromServer(read) => {
                let scratch = self.pump.take_scratch();
                self.server_bytes(&scratch[..read]);
                self.pump.give_scratch(scratch);
            }
            Moved::Errors(read) => {
                let scratch = self.pump.take_scratch();
                self.server_errors(&scratch[..read]);
                self.pump.give_scratch(scratch);
            }
            Moved::ServerEof | Moved::ServerDeaf => self.note_half_close(),
            Moved::Written => {}
            Moved::ClientDeaf => self.dispatch(Event::ClientGone),
        }
        self.pump.adjust_widths();
    }

    /// Takes a splitter out while its pieces are dealt with, which all of the driver may be needed for.
    fn split(&mut self, side: Side, work: impl FnOnce(&mut Splitter, &mut Self)) {
        let mut splitter = std::mem::replace(self.pump.splitter(side), Splitter::new(0));
        work(&mut splitter, self);
        *self.pump.splitter(side) = splitter;
    }

    // === from the client ===

    fn read_client(&mut self, read: usize) {
        let scratch = self.pump.take_scratch();
        self.counters.bytes_to_server += read as u64;
        self.split(Side::Client, |splitter, driver| {
            splitter.feed(&scratch[..read], |piece| driver.client_piece(piece));
        });
        self.pump.give_scratch(scratch);
    }

    fn client_eof(&mut self) {
        self.split(Side::Client, |splitter, driver| splitter.finish(|piece| driver.client_piece(piece)));
        self.unread_until = None;
        self.eof_seen.get_or_insert_with(Instant::now);
        if !self.is_bound_now() {
            look_for_readers(self.asides.clone());
        }
        self.tell_eof();
    }

    /// The client has closed our stdin, now or before. A call that was not answered yet is still wanted if it reads on.
    pub(super) fn tell_eof(&mut self) {
        let reads = self.pump.output.as_ref().is_some_and(|output| !output.is_deaf());
        let wanted = if reads { self.talk.calls() + self.held.len() } else { 0 };
        let patience = self.eof_patience();
        self.dispatch(Event::Eof { wanted, patience });
    }

    fn client_piece(&mut self, piece: Piece<'_>) {
        self.last_activity = Some(Instant::now());
        match piece {
            Piece::Message(line, envelope) => {
                self.counters.messages_to_server += 1;
                self.client_message(line, envelope);
            }
            Piece::Raw(bytes) if self.takes_messages() => self.pump.to_server.push(bytes),
            // There will be no server for it.
            Piece::Raw(_) if self.state == State::Tripped => {}
            Piece::Raw(bytes) => self.hold(bytes.to_vec(), None),
            Piece::TooLong(envelope) => self.client_too_long(&envelope),
        }
    }

    /// There is a server that knows all that its predecessor knew.
    fn takes_messages(&self) -> bool {
        self.state.has_server() && self.replay.is_none()
    }

    fn client_message(&mut self, line: Bytes<'_>, envelope: Envelope) {
        if self.state == State::Tripped {
            let why = format!(
                "`{}` crashes again and again, and is not started for a while",
                self.spec.launch.name
            );
            return self.refuse(&envelope, &line, Failure::NotStarted, &why);
        }
        if self.is_for_us(&envelope, &line) {
            self.talk.hear_client(&envelope, &line);
            return self.answer_info(&envelope);
        }
        if envelope.is_response() && !self.talk.expects(&envelope) && self.had_others() {
            // An answer to a server that is gone: to its successor it would be an answer to something else.
            return;
        }
        // While the server is told what its predecessor knew it may ask something itself, and wait for the answer.
        let is_awaited = self.state.has_server() && envelope.is_response();
        if !self.takes_messages() && !is_awaited {
            let line = match line {
                Bytes::Owned(line) => line,
                Bytes::Borrowed(line) => line.to_vec(),
            };
            return self.hold(line, Some(envelope));
        }
        self.talk.hear_client(&envelope, &line);
        match line {
            Bytes::Borrowed(line) => self.pump.to_server.push(line),
            Bytes::Owned(line) => self.pump.to_server.push_owned(line),
        }
    }

    /// It waits for a server, and wakes one that sleeps.
    fn hold(&mut self, line: Vec<u8>, envelope: Option<Envelope>) {
        self.held_bytes += line.len() + size_of::<Held>();
        self.held.push_back(Held { line, envelope });
        // What the client says next can wait in its own pipe.
        self.pump.holding = self.held_bytes > HELD;
        if self.state == State::Asleep {
            self.wake();
        }
    }

    pub(super) fn release_held(&mut self) {
        if let Some(line) = self.unanswered.take() {
            self.talk.hear_client(&Envelope::of(&line), &line);
            self.pump.to_server.push_owned(line);
        }
        for held in self.take_held() {
            if let Some(envelope) = &held.envelope {
                self.talk.hear_client(envelope, &held.line);
            }
            self.pump.to_server.push_owned(held.line);
        }
    }

    /// The one call fails, nothing else does.
    fn client_too_long(&mut self, envelope: &Envelope) {
        let why = format!("the message is longer than {} bytes", self.spec.rules.line_limit);
        if envelope.is_request() || envelope.batch {
            self.refuse(envelope, b"", Failure::TooLong, &why);
        } else if let Some(id) = envelope.real_id().filter(|_| envelope.is_response()) {
            let line = error_line(id, Failure::TooLong, &why);
            self.pump.to_server.push(&line);
        }
        self.warn(&format!("a message of the client was dropped: {why}"));
    }

    // === from the server ===

    fn server_bytes(&mut self, bytes: &[u8]) {
        self.counters.bytes_to_client += bytes.len() as u64;
        self.split(Side::Server, |splitter, driver| {
            splitter.feed(bytes, |piece| driver.server_piece(piece));
        });
    }

    fn server_errors(&mut self, bytes: &[u8]) {
        (self.around.log)(bytes);
        self.pump.push_errors(bytes);
    }

    /// What is left in the pipes of a server that has ended.
    pub(super) fn drain(&mut self) {
        let drained = self.pump.server.drain();
        self.server_bytes(&drained.output);
        self.server_errors(&drained.errors);
        if self.pump.splitter(Side::Server).holds_message() {
            self.finish_output();
        }
    }

    /// The server says no more: half a message is passed on as it is.
    pub(super) fn finish_output(&mut self) {
        self.split(Side::Server, |splitter, driver| splitter.finish(|piece| driver.server_piece(piece)));
    }

    /// Another server is to speak next: half a message is of no use to the client, and must not run into the next one.
    pub(super) fn drop_half_output(&mut self) {
        self.pump.end_line();
        *self.pump.splitter(Side::Server) = Splitter::new(self.spec.rules.line_limit);
    }

    fn server_piece(&mut self, piece: Piece<'_>) {
        self.last_activity = Some(Instant::now());
        match piece {
            Piece::Message(line, envelope) => {
                self.counters.messages_to_client += 1;
                self.server_message(line, &envelope);
            }
            Piece::Raw(bytes) => self.pump.push_output(bytes),
            Piece::TooLong(envelope) => self.server_too_long(&envelope),
        }
    }

    fn server_message(&mut self, line: Bytes<'_>, envelope: &Envelope) {
        if self.replayed(envelope, &line) || self.talk.is_known(envelope, &line) || self.is_outlived(envelope)
        {
            return;
        }
        let lists_tools = self.spec.rules.info_tool
            && envelope.real_id().and_then(|id| self.talk.method_of(id)) == Some("tools/list");
        if let ServerSaid::Initialized { name, version } =
            self.talk.hear_server(envelope, &line, since_boot())
        {
            self.initialized(name, version);
        }
        if lists_tools {
            self.pass_tools(&line);
        } else if self.pump.output.is_some() {
            match line {
                Bytes::Borrowed(line) => self.pump.to_client.push(line),
                Bytes::Owned(line) => self.pump.to_client.push_owned(line),
            }
        }
        self.note_quiet();
    }

    /// Whether a server that goes to sleep ends with this what its successor is to go on with: a stream, or an `initialize`
    /// that it has not answered in time.
    fn is_outlived(&self, envelope: &Envelope) -> bool {
        self.state == State::FallingAsleep
            && (self.talk.ends_stream(envelope) || (self.unanswered.is_some() && envelope.is_response()))
    }

    /// Nothing is in flight any more that a client who has closed its end waits for.
    pub(super) fn note_quiet(&mut self) {
        if self.state == State::Draining
            && self.talk.calls() == 0
            && self.held.is_empty()
            && self.replay.is_none()
        {
            self.dispatch(Event::Quiet);
        }
    }

    fn initialized(&mut self, name: Option<String>, version: Option<String>) {
        self.works();
        self.initialized_ticks = Some(ticks_since_boot());
        if self.spec.rules.server_version.is_none() {
            self.server_version = version;
        }
        self.update_pid_file();
        self.note(What::Initialized { server_name: name, server_version: self.server_version.clone() });
    }

    /// Whether the message was an answer to what we said again.
    fn replayed(&mut self, envelope: &Envelope, line: &[u8]) -> bool {
        let Some(CatchingUp { replay, .. }) = self.replay.as_mut() else { return false };
        let step = replay.hear_server(envelope, line);
        let changes = replay.is_done().then(|| replay.take_changes());
        if matches!(step, Step::Send(_) | Step::Done(_))
            && let ServerSaid::Initialized { name, version } = self.talk.hear_again(envelope, line)
        {
            self.initialized(name, version);
        }
        match step {
            Step::Pass => return false,
            Step::Send(lines) => {
                self.pump.to_server.push(&lines);
                if let Some(changes) = changes {
                    self.caught_up(&changes);
                }
            }
            Step::Done(changes) => self.caught_up(&changes),
            Step::Failed(why) => self.end_for_good(&format!("it refuses `initialize`: {why}")),
        }
        true
    }

    fn caught_up(&mut self, changes: &[u8]) {
        self.replay = None;
        self.pump.push_line(changes);
        self.release_held();
        self.close_input();
        self.note_quiet();
    }

    /// The server's input ends when it has been told all that the client said.
    pub(super) fn close_input(&mut self) {
        self.pump.closing_input = self.is_input_over && self.replay.is_none() && self.held.is_empty();
        self.pump.close_input_if_done();
    }

    pub(super) fn take_held(&mut self) -> VecDeque<Held> {
        self.pump.holding = false;
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// Whether another server has been here before the one that runs now.
    fn had_others(&self) -> bool {
        self.live.is_none() || self.counters.wakes + self.counters.restarts > 0
    }

    fn server_too_long(&mut self, envelope: &Envelope) {
        let why = format!("the server's message is longer than {} bytes", self.spec.rules.line_limit);
        if let Some(id) = envelope.real_id() {
            let line = error_line(id, Failure::TooLong, &why);
            if envelope.is_response() {
                self.talk.settle(id);
                self.pump.push_line(&line);
            } else {
                self.pump.to_server.push(&line);
            }
        }
        self.warn(&format!("a message of the server was dropped: {why}"));
    }

    // === the info tool ===

    fn is_for_us(&self, envelope: &Envelope, line: &[u8]) -> bool {
        self.spec.rules.info_tool
            && !self.has_own_info
            && envelope.is_request()
            && envelope.method() == Some("tools/call")
            && info_tool::is_called_by(line)
    }

    fn answer_info(&mut self, envelope: &Envelope) {
        let Some(id) = envelope.real_id().map(<[u8]>::to_vec) else { return };
        let (folder, facts, status) = (self.folder.clone(), self.facts.clone(), self.status());
        let (tell, told) = (self.asides.clone(), id.clone());
        let looking = on_thread(move || {
            let info = server_info(folder.as_ref(), &facts, &status);
            let line = info_tool::answer(&id, &info);
            // Nobody listens any more if the session has ended.
            let _ = tell.send(Aside::Line(id, line));
        });
        if let Err(error) = looking {
            let line = error_line(&told, Failure::NotStarted, &format!("cannot look around: {error}"));
            let _ = self.asides.send(Aside::Line(told, line));
        }
    }

    fn pass_tools(&mut self, line: &[u8]) {
        match info_tool::add_to(line) {
            info_tool::Listed::Added(added) if !self.has_own_info => self.pump.push_output(&added),
            info_tool::Listed::ServersOwn => {
                self.has_own_info = true;
                self.pump.push_output(line);
            }
            info_tool::Listed::Added(_) | info_tool::Listed::Untouched => self.pump.push_output(line),
        }
    }
}
