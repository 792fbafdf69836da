//! Bytes into messages: pure, any bytes in any splits.
//!
//! ```text
//!               `{` or `[`                newline
//!   ┌───────────┐ ──────▶ ┌─────────┐ ────────────▶ Message, and at the start of a line again
//!   │ LineStart │         │ Message │ ── too long ─▶ ┌──────────┐ ─ newline ─▶ TooLong
//!   └───────────┘         └─────────┘                │ Dropping │
//!         │  anything else ┌─────┐                   └──────────┘
//!         └──────────────▶ │ Raw │ passes at once, up to and with its newline
//!                          └─────┘
//! ```

use memchr::memchr;

use super::scan::{Envelope, Scan};

/// What came out of the bytes, in their order.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A whole message with its newline.
    Message(Bytes<'a>, Envelope),
    /// Bytes that are no message.
    Raw(&'a [u8]),
    /// A message that was longer than the limit, and is dropped.
    TooLong(Envelope),
}

/// Borrowed from what was fed where it came in one part, else collected.
#[derive(Debug, PartialEq, Eq)]
pub enum Bytes<'a> {
    /// A part of what was fed.
    Borrowed(&'a [u8]),
    /// Collected from several parts.
    Owned(Vec<u8>),
}

impl Bytes<'_> {
    /// As bytes of their own.
    #[must_use]
    pub fn into_owned(self) -> Vec<u8> {
        match self {
            Self::Borrowed(bytes) => bytes.to_vec(),
            Self::Owned(bytes) => bytes,
        }
    }
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    LineStart,
    Message,
    Raw,
    Dropping,
}

/// One direction's bytes on their way to being messages.
#[derive(Debug)]
pub(crate) struct Splitter {
    limit: usize,
    mode: Mode,
    /// The beginning of a message whose end has not come yet.
    partial: Vec<u8>,
    scan: Scan,
}

impl Splitter {
    /// Messages of up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, mode: Mode::default(), partial: Vec::new(), scan: Scan::default() }
    }

    /// Bytes of a message that is not whole yet.
    pub(crate) fn partial_len(&self) -> usize {
        self.partial.len()
    }

    /// Takes bytes in, and gives out what has become whole.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut out: impl FnMut(Piece<'_>)) {
        while let Some(first) = bytes.first() {
            if self.mode == Mode::LineStart {
                // Blanks before a message do not make it another thing, however they come.
                let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
                if blanks > 0 {
                    out(Piece::Raw(&bytes[..blanks]));
                    bytes = &bytes[blanks..];
                    continue;
                }
                self.mode = if matches!(first, b'{' | b'[') { Mode::Message } else { Mode::Raw };
            }
            let newline = memchr(b'\n', bytes);
            let (part, rest) = bytes.split_at(newline.map_or(bytes.len(), |at| at + 1));
            bytes = rest;
            self.take(part, newline.is_some(), &mut out);
        }
    }

    /// The bytes have ended: half a line is given out as it is.
    pub(crate) fn finish(&mut self, mut out: impl FnMut(Piece<'_>)) {
        match std::mem::take(&mut self.mode) {
            // Whole but for its newline.
            Mode::Message if self.scan.is_whole() => {
                out(Piece::Message(Bytes::Owned(std::mem::take(&mut self.partial)), self.scan.take()));
            }
            Mode::Message => out(Piece::Raw(&std::mem::take(&mut self.partial))),
            Mode::Dropping => out(Piece::TooLong(self.scan.take())),
            // All of it was given out.
            Mode::LineStart | Mode::Raw => {}
        }
    }

    /// Whether there is a message that lacks nothing but its newline, or one that is already too long.
    pub(crate) fn holds_message(&self) -> bool {
        match self.mode {
            Mode::Message => self.scan.is_whole(),
            Mode::Dropping => true,
            Mode::LineStart | Mode::Raw => false,
        }
    }

    /// A part of one line, with its newline if `whole`.
    fn take(&mut self, part: &[u8], whole: bool, out: &mut impl FnMut(Piece<'_>)) {
        match self.mode {
            Mode::Message if self.partial.len() + part.len() > self.limit => {
                self.partial = Vec::new();
                self.mode = Mode::Dropping;
                self.drop_part(part, whole, out);
            }
            Mode::Message => self.message_part(part, whole, out),
            Mode::Dropping => self.drop_part(part, whole, out),
            Mode::Raw | Mode::LineStart => out(Piece::Raw(part)),
        }
        if whole {
            self.mode = Mode::LineStart;
        }
    }

    fn message_part(&mut self, part: &[u8], whole: bool, out: &mut impl FnMut(Piece<'_>)) {
        self.scan.feed(part);
        if !whole {
            self.partial.extend_from_slice(part);
        } else if self.partial.is_empty() {
            out(Piece::Message(Bytes::Borrowed(part), self.scan.take()));
        } else {
            self.partial.extend_from_slice(part);
            out(Piece::Message(Bytes::Owned(std::mem::take(&mut self.partial)), self.scan.take()));
        }
    }

    fn drop_part(&mut self, part: &[u8], whole: bool, out: &mut impl FnMut(Piece<'_>)) {
        self.scan.feed(part);
        if whole {
            out(Piece::TooLong(self.scan.take()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(limit: usize, parts: &[&[u8]]) -> Vec<String> {
        let mut splitter = Splitter::new(limit);
        let mut seen = Vec::new();
        let mut note = |piece: Piece<'_>| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            seen.push(match piece {
                Piece::Message(bytes, _) => format!("message {}", text(&bytes)),
                Piece::Raw(bytes) => format!("raw {}", text(bytes)),
                Piece::TooLong(envelope) => format!("too long {:?}", envelope.id.map(|id| text(&id))),
            });
        };
        for part in parts {
            splitter.feed(part, &mut note);
        }
        splitter.finish(&mut note);
        seen
    }

    #[test]
    fn a_message_is_kept_until_it_is_whole_and_anything_else_passes_at_once() {
        let seen = pieces(100, &[b"hello ", b"there\n{\"id\"", b":1}\n> "]);
        assert_eq!(seen, ["raw hello ", "raw there\n", "message {\"id\":1}\n", "raw > "]);
    }

    #[test]
    fn a_message_that_is_too_long_is_named_by_its_id_wherever_that_stands() {
        let long = format!("{{\"result\":\"{}\",\"id\":7}}\n{{\"id\":8}}\n", "x".repeat(200));
        assert_eq!(pieces(50, &[long.as_bytes()]), ["too long Some(\"7\")", "message {\"id\":8}\n"]);
    }

    #[test]
    fn half_a_message_at_the_end_is_given_out_as_it_is() {
        assert_eq!(pieces(50, &[b"{\"id\":"]), ["raw {\"id\":"]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_split_come_out_as_they_went_in(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'{'), Just(b'"')], 0..300),
            cuts in prop::collection::vec(any::<usize>(), 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let (mut splitter, mut seen) = (Splitter::new(usize::MAX), Vec::new());
            let mut collect = |piece: Piece<'_>| match piece {
                Piece::Message(bytes, _) => seen.extend_from_slice(&bytes),
                Piece::Raw(bytes) => seen.extend_from_slice(bytes),
                Piece::TooLong(_) => unreachable!("there is no limit"),
            };
            for pair in cuts.windows(2) {
                splitter.feed(&bytes[pair[0]..pair[1]], &mut collect);
            }
            splitter.finish(&mut collect);
            prop_assert_eq!(seen, bytes);
        }
    }
}
