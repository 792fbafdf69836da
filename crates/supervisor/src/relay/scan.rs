//! The envelope of a JSON-RPC message: `id`, `method`, and whether it is an answer. Read in one pass over the bytes as
//! they come, without building anything; what lies deeper is only counted through.

use memchr::memchr2;

use super::id::id_key;

/// The longest id or method, in bytes, that is read; a longer one counts as none.
const LONGEST: usize = 512;

/// What the outside of a message says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// The id as it was written, quotes and all.
    pub id: Option<Vec<u8>>,
    /// The method, without its quotes.
    pub method: Option<Vec<u8>>,
    /// It has a result.
    pub result: bool,
    /// It has an error.
    pub error: bool,
    /// It is a list of messages.
    pub batch: bool,
}

impl Envelope {
    /// Reads a whole message.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let mut scan = Scan::default();
        scan.feed(message);
        scan.take()
    }

    /// The method as text; an odd one is none that we know.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref().and_then(|method| std::str::from_utf8(method).ok())
    }

    /// Asks for an answer.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.method.is_some() && self.real_id().is_some()
    }

    /// Is an answer.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.method.is_none() && (self.result || self.error)
    }

    /// What this id is compared by: see [`id_key`]. None for `null`.
    #[must_use]
    pub fn id_key(&self) -> Option<Vec<u8>> {
        self.real_id().map(id_key)
    }

    /// The id as it was written, unless it is `null`.
    #[must_use]
    pub fn real_id(&self) -> Option<&[u8]> {
        self.id.as_deref().filter(|id| *id != b"null")
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    BeforeKey,
    InKey,
    AfterKey,
    InValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Id,
    Method,
}

/// A reading of one message, as far as its bytes have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    depth: u32,
    begun: bool,
    in_string: bool,
    escaped: bool,
    place: Place,
    key: Vec<u8>,
    value: Vec<u8>,
    wanted: Option<Wanted>,
    envelope: Envelope,
}

impl Scan {
    /// Reads on.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let read = if self.in_string { self.string(bytes) } else { self.structure(bytes) };
            bytes = &bytes[read..];
        }
    }

    /// Whether what was read is a whole message.
    pub(crate) fn is_whole(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }

    /// What was found, and ready for the next message.
    pub(crate) fn take(&mut self) -> Envelope {
        self.close_value();
        let envelope = std::mem::take(&mut self.envelope);
        *self = Self {
            key: std::mem::take(&mut self.key),
            value: std::mem::take(&mut self.value),
            ..Self::default()
        };
        self.key.clear();
        self.value.clear();
        envelope
    }

    /// Inside of a string: up to its end. Long strings are most of a long message, so they are passed at memory speed.
    fn string(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if std::mem::take(&mut self.escaped) {
                at += 1;
                continue;
            }
            match memchr2(b'"', b'\\', &bytes[at..]) {
                None => at = bytes.len(),
                Some(found) if bytes[at + found] == b'\\' => {
                    self.escaped = true;
                    at += found + 1;
                }
                Some(found) => {
                    at += found + 1;
                    self.in_string = false;
                    self.keep(&bytes[..at]);
                    if self.place == Place::InKey {
                        self.place = Place::AfterKey;
                    }
                    return at;
                }
            }
        }
        self.keep(bytes);
        at
    }

    /// Outside of strings: up to the next one.
    fn structure(&mut self, bytes: &[u8]) -> usize {
        if self.depth > 1 && self.wanted.is_none() {
            return self.deep(bytes);
        }
        let byte = bytes[0];
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.place == Place::BeforeKey && !self.envelope.batch {
                    self.place = Place::InKey;
                    self.key.clear();
                }
            }
            b'{' | b'[' => {
                if self.depth == 0 && byte == b'[' {
                    self.envelope.batch = true;
                }
                self.depth += 1;
                self.begun = true;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.close_value();
                    return 1;
                }
            }
            b':' if self.depth == 1 && self.place == Place::AfterKey => {
                self.open_value();
                return 1;
            }
            b',' if self.depth == 1 => {
                self.close_value();
                self.place = Place::BeforeKey;
                return 1;
            }
            _ => {}
        }
        if self.in_string || self.place == Place::InValue {
            self.keep(&bytes[..1]);
        }
        1
    }

    /// Where nothing is wanted: only depth and strings count.
    fn deep(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => {
                    self.in_string = true;
                    return at + 1;
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 1 {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
        bytes.len()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let into = match (self.place, self.wanted) {
            (Place::InKey, _) => &mut self.key,
            (Place::InValue, Some(_)) => &mut self.value,
            _ => return,
        };
        if into.len() <= LONGEST {
            into.extend_from_slice(&bytes[..bytes.len().min(LONGEST + 1)]);
        }
    }

    fn open_value(&mut self) {
        self.place = Place::InValue;
        self.value.clear();
        // The opening quote is kept too.
        match self.key.as_slice() {
            b"\"id\"" => self.wanted = Some(Wanted::Id),
            b"\"method\"" => self.wanted = Some(Wanted::Method),
            b"\"result\"" => self.envelope.result = true,
            b"\"error\"" => self.envelope.error = true,
            _ => {}
        }
    }

    fn close_value(&mut self) {
        let Some(wanted) = self.wanted.take() else { return };
        let value = self.value.trim_ascii();
        if value.len() > LONGEST {
            return;
        }
        match wanted {
            Wanted::Id => self.envelope.id = Some(value.to_vec()),
            Wanted::Method => {
                let inner = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
                self.envelope.method = inner.map(<[u8]>::to_vec);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn envelope(text: &str) -> Envelope {
        Envelope::of(text.as_bytes())
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let late = envelope(r#"{"result":{"id":1,"x":["\"id\":9}"]},"jsonrpc":"2.0","id":"a\"b"}"#);
        assert!(late.is_response());
        assert_eq!(late.id.as_deref(), Some(br#""a\"b""#.as_slice()));
        let early = envelope(
            r#" { "id" : 12345678901234567890 , "method" : "tools/call", "params":{"method":"no"}}"#,
        );
        assert!(early.is_request());
        assert_eq!(
            (early.id.as_deref(), early.method()),
            (Some(b"12345678901234567890".as_slice()), Some("tools/call"))
        );
    }

    #[test]
    fn a_notification_has_no_id_and_null_is_none() {
        assert!(!envelope(r#"{"method":"notifications/initialized"}"#).is_request());
        assert!(!envelope(r#"{"method":"x","id":null}"#).is_request());
    }

    #[test]
    fn a_batch_says_so() {
        let batch = envelope(r#"[{"id":1,"method":"a"},{"id":2,"method":"b"}]"#);
        assert!(batch.batch && batch.id.is_none() && batch.method.is_none());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("id|method|result|[a-z\"]{0,4}", inner, 0..4)
                    .prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_message_in_any_split_reads_as_serde_reads_it(
            id in value(), method in ".{0,12}", params in value(), cuts in prop::collection::vec(any::<usize>(), 0..6),
        ) {
            let text = json!({"jsonrpc": "2.0", "params": params, "method": method, "id": id}).to_string();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut scan = Scan::default();
            for pair in cuts.windows(2) {
                scan.feed(&text.as_bytes()[pair[0]..pair[1]]);
            }
            let seen = scan.take();
            let written = id.to_string();
            if written.len() <= LONGEST {
                prop_assert_eq!(seen.id.as_deref(), Some(written.as_bytes()));
            }
            let quoted = Value::from(method).to_string();
            prop_assert_eq!(seen.method.as_deref(), Some(&quoted.as_bytes()[1..quoted.len() - 1]));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'{'), Just(b'}'), Just(b'['), Just(b']')], 0..200)) {
            let _ = Envelope::of(&bytes);
        }
    }
}
