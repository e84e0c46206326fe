//! Turns the model's predictions into an answer: constraint, choice and completion.

mod chart;
mod cursor;
mod entries;
mod grammar;
mod ground;
mod guide;
mod lexemes;
mod narrowing;
mod number;
mod repetition;
mod restraint;
mod rules;
mod sampler;
mod search;
mod utf8;

use formwork_core::{Fault, FaultKind, Finish, JsonPath, LogProb};
use toktrie::{TokTrie, TokenId};

pub(crate) use grammar::Grammar;
pub(crate) use guide::{Guide, Unguided};
use guide::{Taken, Withdrawal};
pub(crate) use sampler::Sampler;
use sampler::log_prob;
use search::{Found, Text};
use utf8::Utf8;

/// The reason why an answer was stopped.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The receiver dropped the answer.
    Dropped,
    /// The deadline has passed.
    Late,
    /// The model or the constraint failed.
    Fault(Fault),
}

/// The environment of a decoder: the model and the receiver.
pub(crate) trait Host {
    /// Computes more tokens and returns the logits of the next token.
    fn next(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, Halt>;

    /// Forgets the last computed tokens.
    fn rewind(&mut self, count: usize);

    /// Receives text of the answer, in whole characters.
    fn emit(&mut self, text: String);
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) finish: Finish,
    /// The byte from which on the decoder completed the answer without the model.
    pub(crate) closed_at: Option<usize>,
    /// Whether the restraint for tiny models excluded a token that the model would have chosen.
    pub(crate) restrained: bool,
    /// The paths of grounded values that could not follow the source text.
    pub(crate) strays: Vec<JsonPath>,
    /// The paths of optional texts that were left out, because no text of the source was probable.
    pub(crate) omitted: Vec<JsonPath>,
    /// The tokens of the answer; those that the constraint forced are certain.
    pub(crate) log_probs: Vec<LogProb>,
}

/// Decodes one answer.
pub(crate) struct Decoder<'d> {
    pub(crate) trie: &'d TokTrie,
    /// The tokens that end an answer.
    pub(crate) ends: &'d [TokenId],
    pub(crate) guide: Option<Guide<'d>>,
    pub(crate) sampler: Sampler,
    /// The maximum number of tokens of the answer.
    pub(crate) room: usize,
}

impl Decoder<'_> {
    /// Decodes the answer to a dialogue; `pending` are the last tokens of the prompt, which are not computed yet.
    pub(crate) fn run(mut self, pending: Vec<TokenId>, host: &mut impl Host) -> Result<Ended, Halt> {
        let mut ended = self.decode(pending, host)?;
        (ended.strays, ended.omitted) = self.guide.map(Guide::strays).unwrap_or_default();
        Ok(ended)
    }

    fn decode(&mut self, mut pending: Vec<TokenId>, host: &mut impl Host) -> Result<Ended, Halt> {
        let mut answer = Answer {
            trie: self.trie,
            text: Utf8::default(),
            unsent: Vec::new(),
            log_probs: Vec::new(),
            chosen: 0,
            restrained: false,
        };
        if let Some(guide) = &mut self.guide {
            let forced = guide.forced();
            answer.push(&forced, 0.0);
            pending.extend(forced);
        }
        loop {
            if self.guide.as_ref().is_some_and(Guide::is_done) {
                return Ok(answer.end(Finish::Stop, None, host));
            }
            let left = self.room.saturating_sub(answer.log_probs.len());
            if left == 0 {
                return Ok(self.close(answer, host));
            }
            let logits = match host.next(&pending) {
                // A partial answer, completed without the model, is worth more than an error about the deadline.
                Err(Halt::Late) if answer.chosen > 0 => return Ok(self.close(answer, host)),
                logits => logits?,
            };
            if let Some(guide) = &mut self.guide
                && let Some(search) = guide.search(left, self.sampler.temperature())
            {
                let found = match search.run(&logits, host) {
                    Err(Halt::Late) if answer.chosen > 0 => return Ok(self.close(answer, host)),
                    found => found?,
                };
                if found == Found::Improbable
                    && let Some(omission) = guide.omit(left, answer.unsent.len())
                {
                    pending = answer.take_back(omission, host);
                    continue;
                }
                let mut texts = if let Found::Texts(texts) = found { texts } else { Vec::new() };
                texts.retain(|text| guide.accepts(&text.tokens));
                if let Some(text) = Text::drawn(texts, &mut self.sampler) {
                    if let Some(ending) = guide.end_list(&text.tokens, left, answer.unsent.len()) {
                        pending = answer.take_back(ending, host);
                        answer.restrained = true;
                        continue;
                    }
                    // What is left out or ended later begins after this text.
                    answer.send(host);
                    pending = Vec::new();
                    for (token, log) in text.tokens.iter().zip(text.logs) {
                        let left = self.room.saturating_sub(answer.log_probs.len());
                        let Taken::Tokens(tokens) = guide.take(*token, left).map_err(failed)? else {
                            return Ok(self.close(answer, host));
                        };
                        answer.push(&tokens, log);
                        answer.chosen += 1;
                        pending.extend(tokens);
                    }
                    guide.end_text();
                    continue;
                }
            }
            let (token, log) = self.choose(&logits, left, &mut answer)?;
            answer.chosen += 1;
            if self.ends.contains(&token) {
                return Ok(answer.end(Finish::Stop, None, host));
            }
            pending = match &mut self.guide {
                None => vec![token],
                Some(guide) => match guide.take(token, left).map_err(failed)? {
                    Taken::Tokens(tokens) => tokens,
                    Taken::NoRoom => return Ok(self.close(answer, host)),
                },
            };
            answer.push(&pending, log);
            if !self.guide.as_ref().is_some_and(Guide::may_omit) {
                answer.send(host);
            }
        }
    }

    /// Chooses the next token of an answer that has room for `left` more. Returns it with the logarithm of its probability among the
    /// tokens that the schema allows.
    fn choose(
        &mut self,
        logits: &[f32],
        left: usize,
        answer: &mut Answer<'_>,
    ) -> Result<(TokenId, f32), Halt> {
        let none = || failed("no token may come next".to_owned());
        let Some(guide) = &mut self.guide else {
            let token = self.sampler.pick(logits, None).ok_or_else(none)?;
            return Ok((token, log_prob(logits, None, token)));
        };
        let mask = guide.mask().map_err(failed)?;
        let grounded = guide.grounded(&mask);
        let allowed = grounded.as_ref().unwrap_or(&mask);
        let token = self.sampler.pick(logits, Some(allowed)).ok_or_else(none)?;
        let Some(narrow) = guide.restrain(token, allowed, left) else {
            return Ok((token, log_prob(logits, Some(&mask), token)));
        };
        answer.restrained = true;
        let token = self.sampler.pick(logits, Some(&narrow)).ok_or_else(none)?;
        Ok((token, log_prob(logits, Some(&mask), token)))
    }

    /// Completes the answer without the model.
    fn close(&mut self, mut answer: Answer<'_>, host: &mut impl Host) -> Ended {
        let way = self.guide.as_mut().and_then(Guide::way);
        answer.send(host);
        // The bytes of an incomplete character are the model's; the complete character is not.
        let at = answer.text.len();
        match way {
            Some(way) => {
                answer.push(&way, 0.0);
                answer.end(Finish::Length, Some(at), host)
            }
            None => answer.end(Finish::Length, None, host),
        }
    }
}

/// The answer so far.
struct Answer<'a> {
    trie: &'a TokTrie,
    text: Utf8,
    /// The tokens whose text the host does not have yet.
    unsent: Vec<TokenId>,
    /// The tokens, and how many of them the model chose.
    log_probs: Vec<LogProb>,
    chosen: usize,
    restrained: bool,
}

impl Answer<'_> {
    /// Appends tokens: a chosen one with the logarithm of its probability, and those that follow from it.
    fn push(&mut self, tokens: &[TokenId], log: f32) {
        let logs = std::iter::once(f64::from(log)).chain(std::iter::repeat(0.0));
        let length = |token: &TokenId| self.trie.decode_ext(std::slice::from_ref(token), false).len();
        self.log_probs.extend(tokens.iter().zip(logs).map(|(token, log)| LogProb::new(length(token), log)));
        self.unsent.extend(tokens);
    }

    /// Takes the end back that the guide replaced. Returns the tokens to compute.
    fn take_back(
        &mut self,
        Withdrawal { withdrawn, tokens, before }: Withdrawal,
        host: &mut impl Host,
    ) -> Vec<TokenId> {
        let (at, kept) = (self.log_probs.len() - withdrawn, self.unsent.len() - withdrawn);
        // The first token may be the part of a withdrawn token that ends the value before.
        let old = self.log_probs.get(at).zip(self.unsent.get(kept));
        let part = tokens
            .first()
            .zip(old)
            .filter(|(new, (_, old))| self.trie.token(**old).starts_with(self.trie.token(**new)));
        let log = part.map_or(0.0, |(_, (old, _))| old.milli as f32 / 1000.0);
        self.log_probs.truncate(at);
        self.unsent.truncate(kept);
        self.push(&tokens, log);
        host.rewind(withdrawn);
        match before {
            // The next token follows from the logits of the last one.
            Some(before) if tokens.is_empty() => {
                host.rewind(1);
                vec![before]
            }
            _ => tokens,
        }
    }

    /// Sends all text to the host.
    fn send(&mut self, host: &mut impl Host) {
        let text = self.text.push(&self.trie.decode_ext(&self.unsent, false));
        self.unsent.clear();
        if !text.is_empty() {
            host.emit(text);
        }
    }

    fn end(mut self, finish: Finish, closed_at: Option<usize>, host: &mut impl Host) -> Ended {
        self.send(host);
        let rest = self.text.finish();
        if !rest.is_empty() {
            host.emit(rest);
        }
        Ended {
            finish,
            closed_at,
            restrained: self.restrained,
            strays: Vec::new(),
            omitted: Vec::new(),
            log_probs: self.log_probs,
        }
    }
}

/// Returns the fault of a constraint that the schema overwhelms.
fn failed(reason: String) -> Halt {
    Halt::Fault(Fault::new(FaultKind::SchemaRefused, format!("the constraint failed: {reason}")))
}

#[cfg(test)]
mod tests {
    use formwork_core::{Rule, Sampling};
    use serde_json::{Value, json};
    use toktrie::{ApproximateTokEnv, TokEnv};

    use super::*;
    use crate::Restraint;

    /// A model of single bytes that continues each of these texts, wherever it begins.
    struct Scripted {
        lines: &'static [&'static str],
        written: Vec<u8>,
        sent: String,
        /// The number of pieces that were sent.
        pieces: usize,
    }

    impl Host for Scripted {
        fn next(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, Halt> {
            assert!(!tokens.is_empty(), "a forward pass needs a token");
            self.written.extend(tokens.iter().map(|token| *token as u8));
            let mut logits = vec![0.0_f32; 257];
            for (number, line) in self.lines.iter().enumerate() {
                let line = line.as_bytes();
                let known = (1..line.len()).filter(|known| self.written.ends_with(&line[..*known])).max();
                if let Some(known) = known {
                    let logit = &mut logits[line[known] as usize];
                    *logit = logit.max(8.0 + known as f32 - number as f32 / 2.0);
                }
            }
            Ok(logits)
        }

        fn rewind(&mut self, count: usize) {
            self.written.truncate(self.written.len() - count);
        }

        fn emit(&mut self, text: String) {
            self.sent.push_str(&text);
            self.pieces += 1;
        }
    }

    /// Returns the document that a scripted model writes about a source, and its end.
    fn written(schema: &Value, source: &str, lines: &'static [&'static str]) -> (String, Ended) {
        let environment: TokEnv = ApproximateTokEnv::single_byte_env();
        let grammar = Grammar::new(&environment).unwrap();
        let rules = [Rule::grounded("$".parse().unwrap())];
        let guide = Guide::new(&grammar, schema, &rules, Some(source), 200, Restraint::TinyModel).unwrap();
        let sampler = Sampler::new(&Sampling::default()).unwrap();
        let decoder =
            Decoder { trie: environment.tok_trie(), ends: &[], guide: Some(guide), sampler, room: 200 };
        let mut host = Scripted { lines, written: Vec::new(), sent: String::new(), pieces: 0 };
        let ended = decoder.run(vec![u32::from(b' ')], &mut host).unwrap();
        assert_eq!((&ended.finish, ended.closed_at), (&Finish::Stop, None));
        let length: u32 = ended.log_probs.iter().map(|token| token.length).sum();
        assert_eq!(length as usize, host.sent.len(), "the tokens are those of the text");
        // Each text is sent at the latest when the next one begins.
        assert!(host.pieces >= host.sent.matches(": \"").count(), "{} pieces of {}", host.pieces, host.sent);
        (host.sent, ended)
    }

    /// Returns the document that a scripted model writes about a source, and the paths that it leaves out.
    fn document(schema: &Value, source: &str, lines: &'static [&'static str]) -> (String, String) {
        let (document, ended) = written(schema, source, lines);
        (document, ended.omitted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    }

    fn order(required: &[&str]) -> Value {
        let text = json!({"type": "string"});
        json!({"type": "object", "required": required, "additionalProperties": false, "properties": {
            "name": text, "count": {"type": "integer", "enum": [1, 12]}, "unit": text, "color": text,
        }})
    }

    #[test]
    fn an_optional_text_that_the_source_does_not_state_is_left_out() {
        const LINES: &[&str] = &[
            r#"{"name": "Ann", "count": 1, "unit": "kg", "color": "red"}"#,
            r#"1, "color": "red"}"#,
            r#"{"count": 1, "unit": "kg"}"#,
        ];
        for (required, source, expected, omitted) in [
            (
                &["name"][..],
                "Ann sends 1 kg, red",
                r#"{"name": "Ann", "count": 1, "unit": "kg", "color": "red"}"#,
                "",
            ),
            (&["name"], "Ann sends it, red", r#"{"name": "Ann", "count": 1, "color": "red"}"#, "$.unit"),
            (&["name"], "Ann sends it", r#"{"name": "Ann", "count": 1}"#, "$.unit, $.color"),
            (&[], "She sends 1 kg", r#"{"count": 1, "unit": "kg"}"#, "$.name"),
            (&[], "She sends it", r#"{"count": 1}"#, "$.name, $.unit, $.color"),
        ] {
            let found = document(&order(required), source, LINES);
            assert_eq!(found, (expected.to_owned(), omitted.to_owned()), "{source}");
        }
        let (all, _) = document(&order(&["name", "unit"]), "Ann sends it", LINES);
        assert!(
            all.starts_with(r#"{"name": "Ann", "count": 1, "unit": ""#),
            "a required one is written: {all}"
        );
    }

    #[test]
    fn a_list_ends_before_a_text_that_stands_nowhere_else() {
        const LINES: &[&str] = &[
            r#"{"who": ["Ann", "Bob", "Ann", "Bob", "Ann", "Bob"], "#,
            r#""], "where": ["Paris", "Paris Hilton", "Paris", "Paris", "#,
            r#""], "rows": [{"a": "Ann"}, {"a": "Ann"}]}"#,
        ];
        let text = json!({"type": "string"});
        let list = |least: usize| json!({"type": "array", "minItems": least, "items": text});
        let schema = |least: usize| {
            let row = json!({"type": "object", "required": ["a"], "additionalProperties": false, "properties": {"a": text}});
            json!({"type": "object", "required": ["who", "where", "rows"], "additionalProperties": false, "properties": {
                "who": list(least), "where": list(0), "rows": {"type": "array", "items": row},
            }})
        };
        let rows = r#""rows": [{"a": "Ann"}, {"a": "Ann"}]"#;
        for (least, source, who, places) in [
            (0, "Ann saw Bob in Paris", r#""Ann", "Bob""#, r#""Paris""#),
            (
                0,
                "Ann saw Bob. Ann left Paris for Paris Hilton",
                r#""Ann", "Bob", "Ann""#,
                r#""Paris", "Paris Hilton""#,
            ),
            (
                3,
                "Ann saw Paris Hilton and Bob in Paris",
                r#""Ann", "Bob", "Ann""#,
                r#""Paris", "Paris Hilton""#,
            ),
        ] {
            let (found, ended) = written(&schema(least), source, LINES);
            assert!(ended.restrained, "the outcome says that a list was ended");
            assert_eq!(found, format!(r#"{{"who": [{who}], "where": [{places}], {rows}}}"#), "{source}");
        }
    }

    #[test]
    fn a_text_is_chosen_as_a_whole() {
        // "S" is the most probable first letter, but no word of the source goes on as the model would.
        let schema = json!({"type": "string"});
        const LINES: &[&str] = &["\"Switzerland\"", "Civil War\""];
        assert_eq!(document(&schema, "Civil War, S. president", LINES).0, "\"Civil War\"");
    }

    /// A model whose predictions are random functions of the text so far.
    struct Random(u64, Vec<TokenId>, String);

    impl Host for Random {
        fn next(&mut self, tokens: &[TokenId]) -> Result<Vec<f32>, Halt> {
            self.1.extend(tokens);
            let state = self.1.iter().fold(self.0, |state, token| {
                (state ^ u64::from(*token)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
            });
            Ok((0..257).map(|token| (state.rotate_left(token % 64) % 1000) as f32 / 200.0).collect())
        }

        fn rewind(&mut self, count: usize) {
            self.1.truncate(self.1.len() - count);
        }

        fn emit(&mut self, text: String) {
            self.2.push_str(&text);
        }
    }

    /// Returns whether runs of words stand at places of a source that do not overlap.
    fn have_places(words: &[&str], items: &[&str], taken: u64) -> bool {
        let Some((item, others)) = items.split_first() else { return true };
        let run: Vec<&str> = item.split(' ').collect();
        let mask = (1 << run.len()) - 1;
        (0..words.len()).any(|from| {
            let own = mask << from;
            words[from..].starts_with(&run) && taken & own == 0 && have_places(words, others, taken | own)
        })
    }

    proptest::proptest! {
        #[test]
        fn the_items_of_a_list_stand_at_places_of_their_own(source in "[abc]{1,2}( [abc]{1,2}){0,4}", seed: u64, is_root: bool) {
            let environment: TokEnv = ApproximateTokEnv::single_byte_env();
            let grammar = Grammar::new(&environment).unwrap();
            let rules = [Rule::grounded("$".parse().unwrap())];
            let list = json!({"type": "array", "items": {"type": "string"}});
            let schema = match is_root {
                true => list,
                false => json!({"type": "object", "required": ["x", "y"], "additionalProperties": false, "properties": {"x": list, "y": list}}),
            };
            let guide = Guide::new(&grammar, &schema, &rules, Some(&source), 200, Restraint::TinyModel).unwrap();
            let sampler = Sampler::new(&Sampling::default()).unwrap();
            let decoder = Decoder { trie: environment.tok_trie(), ends: &[], guide: Some(guide), sampler, room: 200 };
            let mut host = Random(seed, Vec::new(), String::new());
            decoder.run(vec![u32::from(b' ')], &mut host).unwrap();
            let found: Value = serde_json::from_str(&host.2).unwrap();
            let lists = if is_root { vec![found] } else { vec![found["x"].clone(), found["y"].clone()] };
            let words: Vec<&str> = source.split(' ').collect();
            for list in lists {
                let items: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                proptest::prop_assert!(have_places(&words, &items, 0), "{list} of {source}");
            }
        }
    }
}
