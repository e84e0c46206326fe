//! Messages of an event stream of AWS (`application/vnd.amazon.eventstream`).
//!
//! A message is: its length and that of its headers, a checksum of both (CRC-32), the headers, the payload, and a checksum of all
//! before it. Numbers are big-endian.

use std::borrow::Cow;

use formwork_core::{Fault, FaultKind};
use formwork_wire::Framing;
use serde_json::{Value, json};

/// The lengths and their checksum.
const PRELUDE: usize = 12;

/// The maximum length of a message: AWS allows 16 MiB of payload and 128 KiB of headers.
const MAX: usize = (16 << 20) + (128 << 10) + 16;

/// Splits a body into messages. The text of an event is `{"TYPE":PAYLOAD}`; that of an exception is
/// `{"error":{"type":TYPE,"message":MESSAGE}}`.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// The number of bytes at the beginning that were read.
    read: usize,
    is_broken: bool,
}

impl Framing for Frames {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.read));
        self.bytes.extend_from_slice(chunk);
    }

    fn next(&mut self) -> Option<Result<Cow<'_, str>, Fault>> {
        if self.is_broken {
            return None;
        }
        let rest = self.bytes.get(self.read..)?;
        let message =
            whole(rest).and_then(|length| length.map(|length| message(&rest[..length])).transpose());
        match message {
            Ok(None) => None,
            Ok(Some((text, length))) => {
                self.read += length;
                Some(Ok(Cow::Owned(text)))
            }
            Err(reason) => {
                self.is_broken = true;
                let message = format!("the response is not an event stream of AWS: {reason}");
                Some(Err(Fault::new(FaultKind::BadWire, message)))
            }
        }
    }

    fn finish(&mut self) -> Option<Result<String, Fault>> {
        let is_cut = !self.is_broken && self.read < self.bytes.len();
        is_cut.then(|| Err(Fault::cut_off("it ends within a message")))
    }
}

/// Returns the length of the message at the beginning, once all of it is there.
fn whole(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    let Some((prelude, sum)) = bytes.get(..PRELUDE).and_then(|head| head.split_at_checked(8)) else {
        return Ok(None);
    };
    if crc32fast::hash(prelude) != number(sum) {
        return Err("the checksum of a message's lengths is wrong");
    }
    let (total, headers) = (number(prelude) as usize, number(&prelude[4..]) as usize);
    if total > MAX || headers.checked_add(PRELUDE + 4).is_none_or(|least| total < least) {
        return Err("a message has impossible lengths");
    }
    Ok((bytes.len() >= total).then_some(total))
}

/// Returns the text of a complete message, and its length.
fn message(bytes: &[u8]) -> Result<(String, usize), &'static str> {
    let (content, sum) = bytes.split_at(bytes.len() - 4);
    if crc32fast::hash(content) != number(sum) {
        return Err("the checksum of a message is wrong");
    }
    let (head, payload) = content[PRELUDE..].split_at(number(&content[4..]) as usize);
    let payload = std::str::from_utf8(payload).map_err(|_| "a payload is not UTF-8")?;
    let (mut event, mut exception) = (None, None);
    let mut head = head;
    while !head.is_empty() {
        let (name, value);
        (name, value, head) = header(head).ok_or("the headers of a message are broken")?;
        match name {
            b":event-type" => event = value,
            b":exception-type" | b":error-code" => exception = value,
            _ => {}
        }
    }
    let text = match (exception, event) {
        (Some(kind), _) => {
            let document: Value = serde_json::from_str(payload).unwrap_or_default();
            let message = document["message"].as_str().unwrap_or(payload);
            json!({"error": {"type": kind, "message": message}}).to_string()
        }
        (None, Some(kind)) => {
            let payload = if payload.is_empty() { "{}" } else { payload };
            format!("{{{}:{payload}}}", json!(kind))
        }
        (None, None) => return Err("a message has no type"),
    };
    Ok((text, bytes.len()))
}

/// A header: its name, its value if that is text, and the headers after it.
type Header<'a> = (&'a [u8], Option<&'a str>, &'a [u8]);

fn header(bytes: &[u8]) -> Option<Header<'_>> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let (kind, rest) = rest.split_first()?;
    let (length, rest) = match kind {
        0 | 1 => (0, rest),
        2 => (1, rest),
        3 => (2, rest),
        4 => (4, rest),
        5 | 8 => (8, rest),
        9 => (16, rest),
        // Bytes and text have a length of their own.
        6 | 7 => {
            let (length, rest) = rest.split_at_checked(2)?;
            (usize::from(u16::from_be_bytes([length[0], length[1]])), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((name, std::str::from_utf8(value).ok().filter(|_| *kind == 7), rest))
}

/// Returns the number in the first four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use formwork_testkit::aws_message as framed;

    use super::*;

    fn read(body: &[u8], chunk: usize) -> Vec<Result<String, String>> {
        let mut frames = Frames::default();
        let mut out = Vec::new();
        for piece in body.chunks(chunk) {
            frames.push(piece);
            while let Some(message) = frames.next() {
                out.push(message.map(Cow::into_owned).map_err(|fault| fault.message));
            }
        }
        out.extend(frames.finish().map(|rest| rest.map_err(|fault| fault.message)));
        out
    }

    /// The published case `payload_one_str_header` of AWS's test suite for event streams, and the message without anything
    /// (`empty_message`), whose bytes the suite gives.
    #[test]
    fn published_messages_are_read() {
        let empty = [0, 0, 0, 16, 0, 0, 0, 0, 5, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert_eq!(
            read(&empty, 16),
            [Err("the response is not an event stream of AWS: a message has no type".to_owned())]
        );
        // Its checksums are right, which is what the message without a type shows.
        let mut broken = empty;
        broken[15] = 0;
        assert!(read(&broken, 16)[0].as_ref().unwrap_err().contains("the checksum of a message is wrong"));
    }

    #[test]
    fn events_are_the_same_in_chunks_of_every_size() {
        let event = [(":message-type", "event"), (":event-type", "messageStop")];
        let mut body = framed(&event, r#"{"stopReason":"end_turn"}"#);
        body.extend(framed(&event[1..], ""));
        let words = r#"{"message": "slow \"down\""}"#;
        body.extend(framed(&[(":exception-type", "throttlingException")], words));
        let expected = [
            r#"{"messageStop":{"stopReason":"end_turn"}}"#,
            r#"{"messageStop":{}}"#,
            r#"{"error":{"type":"throttlingException","message":"slow \"down\""}}"#,
        ];
        for chunk in 1..=body.len() {
            assert_eq!(read(&body, chunk), expected.map(|text| Ok(text.to_owned())), "{chunk}");
        }
        for end in 1..body.len() {
            let read = read(&body[..end], 7);
            let is_whole = read.iter().all(Result::is_ok);
            assert!(
                read.len() <= 4
                    && (is_whole || read.last().unwrap().as_ref().unwrap_err().contains("ends within")),
                "{end}"
            );
        }
    }

    /// A changed byte is never read as another message, and nothing panics.
    #[test]
    fn every_changed_byte_is_noticed() {
        let body = framed(&[(":event-type", "messageStop")], r#"{"stopReason":"end_turn"}"#);
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut body = body.clone();
                body[at] ^= 1 << bit;
                let read = read(&body, 64);
                assert!(read.iter().all(Result::is_err) && read.len() == 1, "{at} {bit}: {read:?}");
            }
        }
    }
}
