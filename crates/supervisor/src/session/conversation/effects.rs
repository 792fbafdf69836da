//! What follows from a message: a value that the session's task carries out.

use crate::relay::Bytes;

/// Something that the client is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct ToClient<'a> {
    /// The message, with its newline.
    pub bytes: Bytes<'a>,
    /// The id of the client's request that this answers, as the client wrote it. None for a batch of answers.
    pub answers: Option<Vec<u8>>,
    /// Who wrote it.
    pub author: Author,
}

/// Who wrote a message for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// It is passed on as it came.
    Server,
    /// A whole line of our own. The server may have left half a line before it.
    Moored,
}

/// What the server said of itself when it answered `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
}

/// What follows from something that was said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects<'a> {
    pub(crate) to_server: Few<Bytes<'a>>,
    pub(crate) to_client: Few<ToClient<'a>>,
    pub(crate) next: FollowUps,
}

/// What the session has to do besides passing bytes on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FollowUps {
    /// Something waits for a server: one that sleeps is to be woken.
    pub(crate) wants_server: bool,
    /// The server has answered `initialize`.
    pub(crate) initialized: Option<ServerInfo>,
    /// `get_server_info` was called by the requests with these ids. [`Conversation::answer`] is to follow for each.
    ///
    /// [`Conversation::answer`]: super::Conversation::answer
    pub(crate) info_wanted: Vec<Vec<u8>>,
    /// The server cannot take its predecessor's place, for this reason.
    pub(crate) misfit: Option<String>,
    /// For the user, each a sentence.
    pub(crate) warnings: Vec<String>,
}

impl FollowUps {
    /// What followed from several messages is done once.
    pub(crate) fn merge(&mut self, other: Self) {
        self.wants_server |= other.wants_server;
        self.initialized = other.initialized.or(self.initialized.take());
        self.info_wanted.extend(other.info_wanted);
        self.misfit = self.misfit.take().or(other.misfit);
        self.warnings.extend(other.warnings);
    }
}

impl<'a> Effects<'a> {
    pub(super) fn none() -> Self {
        Self::default()
    }

    pub(super) fn send(&mut self, bytes: Bytes<'a>) {
        if !bytes.is_empty() {
            self.to_server.push(bytes);
        }
    }

    /// A line of our own that answers the request with that id.
    pub(super) fn reply(&mut self, id: &[u8], line: Vec<u8>) {
        let answers = Some(id.to_vec());
        self.to_client.push(ToClient { bytes: Bytes::Owned(line), answers, author: Author::Moored });
    }

    /// Lines of our own that answer nothing.
    pub(super) fn tell(&mut self, lines: Vec<u8>) {
        if !lines.is_empty() {
            let bytes = Bytes::Owned(lines);
            self.to_client.push(ToClient { bytes, answers: None, author: Author::Moored });
        }
    }

    pub(super) fn pass(&mut self, bytes: Bytes<'a>, answers: Option<Vec<u8>>) {
        self.to_client.push(ToClient { bytes, answers, author: Author::Server });
    }
}

/// A list that is mostly empty or of one: neither allocates.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Few<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Few<T> {
    fn push(&mut self, item: T) {
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            self.rest.push(item);
        }
    }
}

impl ToClient<'_> {
    pub(crate) fn into_owned(self) -> ToClient<'static> {
        ToClient { bytes: Bytes::Owned(self.bytes.into_owned()), answers: self.answers, author: self.author }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}
