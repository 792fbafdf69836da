//! The ways in which a session comes to its end.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The owner calls `end` with a ladder that begins at EOF …
    End,
    /// … at SIGTERM …
    Terminate,
    /// … at SIGKILL.
    Kill,
    /// The owner drops the handle.
    Drop,
    /// The owner returns from `main` with the handle forgotten.
    Return,
    /// `process::exit`.
    Exit,
    /// A SIGKILL of the owner.
    HostKilled,
    /// A SIGKILL of the outer guardian.
    OuterKilled,
    /// A SIGKILL of the inner guardian.
    InnerKilled,
    /// The server exits by itself.
    ServerExits,
    /// The owner closes the server's stdin, and waits.
    InputCloses,
    /// A SIGKILL of the owner and the outer guardian …
    HostAndOuterKilled,
    /// … and the inner guardian.
    HostAndInnerKilled,
}

impl Ending {
    /// Those that every server comes to, with at least two of ours left to see it through.
    pub(crate) const ALL: [Self; 10] = [
        Self::End,
        Self::Terminate,
        Self::Kill,
        Self::Drop,
        Self::Return,
        Self::Exit,
        Self::HostKilled,
        Self::OuterKilled,
        Self::InnerKilled,
        Self::ServerExits,
    ];

    /// What `promise_host` calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Terminate => "terminate",
            Self::Kill => "kill",
            Self::Drop => "drop",
            Self::Return => "return",
            Self::Exit => "exit",
            Self::HostKilled | Self::HostAndOuterKilled | Self::HostAndInnerKilled => "hold",
            Self::InputCloses => "close-stdin",
            Self::OuterKilled | Self::InnerKilled | Self::ServerExits => "wait",
        }
    }

    /// Whether the owner lives to read the report.
    pub(crate) fn has_report(self) -> bool {
        !matches!(self, Self::Drop | Self::Return | Self::Exit | Self::HostKilled)
            && !self.leaves_one_guardian()
    }

    /// Whether one guardian alone has to end the session. The other may have died just after that one handed its last
    /// duties to it: then the tree is gone in time, and the record is left to the next start.
    pub(crate) fn leaves_one_guardian(self) -> bool {
        matches!(self, Self::HostAndOuterKilled | Self::HostAndInnerKilled)
    }
}
