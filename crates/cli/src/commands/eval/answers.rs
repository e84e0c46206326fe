//! The answers: recorded elsewhere, or by this command.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use formwork_eval::Effort;
use serde_json::Value;

use super::live::Keys;
use super::notes::Notes;
use super::{digest, id_text};
use crate::exit::Failed;
use crate::files;
use crate::jsonl::{BadRow, Row, numbered};
use crate::rows::EvalAnswer;

/// An answer: its line, and its value as JSON, which takes less memory than a parsed one.
struct Recorded {
    line: usize,
    value: Box<str>,
    factors: Factors,
}

/// The share of the score of each value that its history and tokens leave, by path.
type Factors = BTreeMap<String, f64>;

/// The answer to a row of the gold.
pub(super) struct Taken {
    /// The file and the line.
    pub(super) place: String,
    pub(super) value: Value,
    pub(super) factors: Factors,
}

/// The rows of a file with their lines.
type Lines = Box<dyn Iterator<Item = Result<(usize, Row<EvalAnswer>), Failed>>>;

/// The answers of a configuration. A file with the order of the gold is read along with it; answers are kept only until the
/// gold comes to them.
pub(super) struct Answers {
    file: String,
    /// The configuration whose answers count; `None`: those of the whole file.
    configuration: Option<String>,
    /// The models of the answers so far.
    models: BTreeSet<String>,
    /// The configuration of the first answer, of which all are if no configuration was named.
    first: Option<String>,
    /// The keys of the answers that count; `None` if all do.
    keys: Option<Rc<Keys>>,
    lines: Lines,
    /// The answers that were read and not taken, by their id.
    values: HashMap<String, Recorded>,
    pub(super) efforts: Vec<Effort>,
}

/// Returns the names of the configurations of a file of answers; none of a file that can be read once only, such as standard input.
pub(super) fn configurations(path: &Path) -> Result<Vec<String>, Failed> {
    let mut names = Vec::new();
    if path.is_file() {
        for row in numbered::<EvalAnswer>(path)? {
            let name = row?.1.ok().and_then(|row| row.configuration);
            names.extend(name.filter(|name| !names.contains(name)));
        }
    }
    Ok(names)
}

impl Answers {
    /// Opens a file of answers, for those of one configuration or of all, and for those with these keys.
    pub(super) fn open(path: &Path, own: Option<&str>, keys: Option<Rc<Keys>>) -> Result<Self, Failed> {
        Ok(Self {
            keys,
            file: files::name(path),
            configuration: own.map(str::to_owned),
            models: BTreeSet::new(),
            first: None,
            lines: Box::new(numbered::<EvalAnswer>(path)?),
            values: HashMap::new(),
            efforts: Vec::new(),
        })
    }

    /// Reads the next answer, and keeps it. `seen` are the ids of the gold so far, whose answers were taken. Returns whether there was
    /// an answer.
    fn next(&mut self, seen: &HashSet<u64>, notes: &mut Notes) -> Result<bool, Failed> {
        while let Some(row) = self.lines.next() {
            let (line, row) = row?;
            let (file, is_own) = (&self.file, self.configuration.is_some());
            match row {
                Err(BadRow { message, .. }) if self.keys.is_none() => notes.failed(message),
                // The last line of a process that was killed.
                Err(_) => {}
                Ok(row) if is_own && (row.configuration != self.configuration || self.is_old(&row)) => {}
                Ok(EvalAnswer { configuration: Some(other), .. })
                    if !is_own && *self.first.get_or_insert_with(|| other.clone()) != other =>
                {
                    let first = self.first.as_deref().unwrap_or_default();
                    return Err(Failed::usage(format!(
                        "{file}:{line}: this answer is of the configuration {other}, and those before it are of {first}: name a file for \
                         each configuration"
                    )));
                }
                Ok(EvalAnswer { value: None, .. }) => {
                    notes.failed(format!("{file}:{line}: the row has no `value`: write null for no answer"));
                }
                Ok(EvalAnswer { id, value: Some(value), effort, factors, models, .. }) => {
                    let key = id_text(&id);
                    self.models.extend(models);
                    self.efforts.extend(effort);
                    let known = self.values.get(&key);
                    // A later line is a later attempt at a row that had no answer.
                    let is_open = is_own && known.is_some_and(|known| *known.value == *"null");
                    let first = match known {
                        Some(known) if !is_open => Some(format!("{file}:{}", known.line)),
                        None if seen.contains(&digest(&key)) => Some("an earlier row".to_owned()),
                        _ => None,
                    };
                    if let Some(first) = first {
                        notes.failed(format!("{file}:{line}: the id {id} is that of {first}, which counts"));
                        continue;
                    }
                    self.values.insert(key, Recorded { line, value: value.to_string().into(), factors });
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the models of the answers that were read.
    pub(super) const fn models(&self) -> &BTreeSet<String> {
        &self.models
    }

    /// Returns whether the row answers another question than the present one.
    fn is_old(&self, row: &EvalAnswer) -> bool {
        let configuration = row.configuration.as_deref().unwrap_or_default();
        let Some(keys) = &self.keys else { return false };
        let present = keys.get(&digest(&format!("{configuration}\n{}", id_text(&row.id))));
        // An answer to a row that the gold no longer has is no answer to a present question.
        present.is_none_or(|present| row.key.as_deref().is_none_or(|key| digest(key) != *present))
    }

    /// Takes the answer with this id. `seen` are the ids of the gold before it.
    pub(super) fn take(
        &mut self,
        id: &str,
        seen: &HashSet<u64>,
        notes: &mut Notes,
    ) -> Result<Option<Taken>, Failed> {
        // A later line may have the answer to a row that had none, if this command appends to the file.
        let may_follow = self.configuration.is_some();
        let is_final = |known: &Recorded| !(may_follow && *known.value == *"null");
        while !self.values.get(id).is_some_and(is_final) && self.next(seen, notes)? {}
        let Some(Recorded { line, value, factors }) = self.values.remove(id) else { return Ok(None) };
        let value = serde_json::from_str(&value).unwrap_or_default();
        Ok(Some(Taken { place: format!("{}:{line}", self.file), value, factors }))
    }

    /// Reads the rest of the file. Returns the number of answers to no row of the gold, and the place of the first one.
    pub(super) fn finish(
        &mut self,
        seen: &HashSet<u64>,
        notes: &mut Notes,
    ) -> Result<Option<(usize, String)>, Failed> {
        while self.next(seen, notes)? {}
        let unknown = || self.values.iter().filter(|(id, _)| !seen.contains(&digest(id)));
        let first = unknown().map(|(_, recorded)| recorded.line).min();
        Ok(first.map(|line| (unknown().count(), format!("{}:{line}", self.file))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the answers to the ids 0 to 99 from a file with these ids. Returns the largest number of kept answers, and the notes.
    fn largest(name: &str, ids: impl IntoIterator<Item = u32>) -> (usize, Vec<String>) {
        let path = std::env::temp_dir().join(format!("formwork-answers-{}-{name}.jsonl", std::process::id()));
        let rows: String = ids.into_iter().map(|id| format!("{{\"id\": {id}, \"value\": {id}}}\n")).collect();
        std::fs::write(&path, rows).unwrap();
        let (mut notes, mut seen, mut kept) = (Notes::default(), HashSet::new(), 0);
        let mut answers = Answers::open(&path, None, None).unwrap();
        for id in 0..100 {
            let taken = answers.take(&id.to_string(), &seen, &mut notes).unwrap();
            assert_eq!(taken.unwrap().value, id, "{name}");
            seen.insert(digest(&id.to_string()));
            kept = kept.max(answers.values.len());
        }
        let unknown = answers.finish(&seen, &mut notes).unwrap();
        notes.all.extend(unknown.map(|(count, _)| format!("{count} unknown")));
        std::fs::remove_file(&path).unwrap();
        (kept, notes.all)
    }

    #[test]
    fn answers_in_the_order_of_the_gold_are_not_kept() {
        assert_eq!(largest("order", 0..100), (0, vec![]));
        assert_eq!(largest("pairs", (0..100).map(|id| id ^ 1)), (1, vec![]));
        assert_eq!(largest("reversed", (0..100).rev()), (99, vec![]));
        let (kept, notes) = largest("twice", [0, 0, 200].into_iter().chain(1..100).chain([7, 201, 200]));
        assert_eq!((kept, notes.len()), (1, 4), "{notes:?}");
        for (note, words) in notes.iter().zip([
            ":2: the id 0 is that of an earlier row, which counts",
            ":103: the id 7 is that of an earlier row, which counts",
            "the id 200 is that of",
            "2 unknown",
        ]) {
            assert!(note.contains(words), "{note}: {words}");
        }
    }
}
