//! Reads the texts at one place of a document, and skips everything else unread, as types for this one document would.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::wires::Path;

/// A piece of a completion.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: Option<String>,
    pub(super) is_last: bool,
}

/// Reads the texts at a place, and the mark of the last event: `true`, a text, or this text.
pub(super) fn read(json: &[u8], text: Path, last: Option<(Path, Option<&str>)>) -> serde_json::Result<Piece> {
    let mut piece = Piece::default();
    let place =
        Place { text: Some(text), last: last.map(|(path, _)| path), mark: last.and_then(|(_, mark)| mark) };
    place.with(&mut piece).deserialize(&mut serde_json::Deserializer::from_slice(json))?;
    Ok(piece)
}

/// The rest of the two paths from the value that is read, if they lead through it.
#[derive(Clone, Copy)]
struct Place<'m> {
    text: Option<Path>,
    last: Option<Path>,
    mark: Option<&'m str>,
}

impl<'m> Place<'m> {
    fn inside(self, name: &str) -> Self {
        let rest = |path: Option<Path>| {
            path?.split_first().filter(|(first, _)| **first == name).map(|(_, rest)| rest)
        };
        Self { text: rest(self.text), last: rest(self.last), ..self }
    }

    fn with(self, piece: &mut Piece) -> At<'m, '_> {
        At { place: self, piece }
    }
}

struct At<'m, 'p> {
    place: Place<'m>,
    piece: &'p mut Piece,
}

impl<'de> DeserializeSeed<'de> for At<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.place.text.is_none() && self.place.last.is_none() {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(place) = map.next_key_seed(Name(self.place))? {
            map.next_value_seed(place.with(self.piece))?;
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<(), S::Error> {
        let place = self.place.inside("*");
        while items.next_element_seed(place.with(self.piece))?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.place.text.is_some_and(<[_]>::is_empty) {
            self.piece.text.get_or_insert_default().push_str(text);
        }
        if self.place.last.is_some_and(<[_]>::is_empty) {
            self.piece.is_last = self.place.mark.is_none_or(|mark| mark == text);
        }
        Ok(())
    }

    fn visit_bool<E>(self, is_last: bool) -> Result<(), E> {
        self.piece.is_last |= is_last && self.place.last.is_some_and(<[_]>::is_empty);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The name of a member, which leads to the place of its value.
struct Name<'m>(Place<'m>);

impl<'de, 'm> DeserializeSeed<'de> for Name<'m> {
    type Value = Place<'m>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Place<'m>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'m> Visitor<'_> for Name<'m> {
    type Value = Place<'m>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Place<'m>, E> {
        Ok(self.0.inside(name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::canned::Completion;
    use super::super::wires::WIRES;
    use super::*;
    use crate::bench::oracle::VALID;

    /// A client that read less of a response than ours would be no peer.
    #[test]
    fn the_texts_of_each_protocol_are_the_completion_and_its_last_event_is_the_last() {
        for wire in &WIRES {
            let canned = (wire.canned)(&Completion::valid());
            let document = read(canned.document.as_bytes(), wire.document, None).unwrap();
            assert_eq!(document.text.as_deref(), Some(VALID), "{}", wire.name);
            let mut text = String::new();
            for (nth, event) in canned.events.iter().enumerate() {
                let (length, whole) = wire.framing.next(event.as_bytes()).unwrap();
                assert_eq!(whole, event.len(), "{}", wire.name);
                let data = wire.framing.data(&event.as_bytes()[..length]).unwrap();
                let is_done = data == b"[DONE]";
                let piece = if is_done {
                    Piece { is_last: true, text: None }
                } else {
                    read(data, wire.event, Some(wire.last)).unwrap()
                };
                text.extend(piece.text);
                assert_eq!(piece.is_last, nth + 1 == canned.events.len(), "{} {event}", wire.name);
            }
            assert_eq!(text, VALID, "{}", wire.name);
        }
    }
}
