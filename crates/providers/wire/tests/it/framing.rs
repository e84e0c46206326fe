use formwork_core::{Fault, FaultKind};
use formwork_wire::{Framing, Ndjson, Sse};
use proptest::prelude::*;

fn messages<F: Framing>(chunks: &[&[u8]]) -> Vec<Result<String, Fault>> {
    let (mut framing, mut out) = (F::default(), Vec::new());
    for chunk in chunks {
        framing.push(chunk);
        while let Some(message) = framing.next() {
            out.push(message.map(std::borrow::Cow::into_owned));
        }
    }
    out.extend(framing.finish());
    out
}

fn texts<F: Framing>(body: &str) -> Vec<String> {
    messages::<F>(&[body.as_bytes()]).into_iter().map(Result::unwrap).collect()
}

/// Splits a body into chunks that end at these offsets.
fn cut(body: &[u8], mut at: Vec<usize>) -> Vec<&[u8]> {
    at.iter_mut().for_each(|at| *at %= body.len() + 1);
    at.sort_unstable();
    let ends = at.iter().copied().chain([body.len()]);
    let mut start = 0;
    ends.map(|end| &body[std::mem::replace(&mut start, end)..end]).collect()
}

proptest! {
    #[test]
    fn where_chunks_end_makes_no_difference(
        body in "(data: ?|event: x|:|[a-zé€🦀{}\" ]{0,6}|\r\n|\n|\r|\n\n){0,24}",
        at in proptest::collection::vec(any::<usize>(), 0..8),
    ) {
        let chunks = cut(body.as_bytes(), at);
        prop_assert_eq!(messages::<Sse>(&chunks), messages::<Sse>(&[body.as_bytes()]));
        prop_assert_eq!(messages::<Ndjson>(&chunks), messages::<Ndjson>(&[body.as_bytes()]));
    }

    #[test]
    fn every_line_is_a_message(lines in proptest::collection::vec("[a-z{}é🦀]{1,9}", 0..6), ends in any::<bool>()) {
        let body = lines.join("\n") + if ends { "\n" } else { "" };
        prop_assert_eq!(texts::<Ndjson>(&body), lines);
    }

    #[test]
    fn any_bytes_are_taken(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        messages::<Sse>(&[&body]);
        messages::<Ndjson>(&[&body]);
    }
}

#[test]
fn events_are_read_as_the_standard_says() {
    for (body, data) in [
        ("data: a\n\n", vec!["a"]),
        ("data:a\r\n\r\ndata: b\r\rdata:  c\n\n", vec!["a", "b", " c"]),
        ("data: a\ndata: b\n\n", vec!["a\nb"]),
        (": keep-alive\n\nevent: message\nid: 1\nretry: 5\ndata: a\n\n", vec!["a"]),
        ("\u{feff}data: a\n\n", vec!["a"]),
        ("data\n\n", vec![""]),
        ("datas: a\n\n\n\n", vec![]),
        ("data: a\n\ndata: [DONE]", vec!["a", "[DONE]"]),
        ("data: a\n\ndata: [DONE]\n", vec!["a", "[DONE]"]),
    ] {
        assert_eq!(texts::<Sse>(body), data, "{body:?}");
    }
}

#[test]
fn a_character_that_was_cut_off_may_come_whole_the_next_time() {
    let body = "data: é";
    let half = &body.as_bytes()[..body.len() - 1];
    let line = [half, b"\n\n"].concat();
    for (body, kind) in [(half, FaultKind::Unreachable), (&line, FaultKind::BadWire)] {
        for messages in [messages::<Sse>(&[body]), messages::<Ndjson>(&[body])] {
            assert_eq!(messages[0].as_ref().unwrap_err().kind, kind);
        }
    }
}

#[test]
fn a_million_short_lines_take_no_time() {
    let body = "{}\n".repeat(1_000_000);
    assert_eq!(messages::<Ndjson>(&body.as_bytes().chunks(4096).collect::<Vec<_>>()).len(), 1_000_000);
}
