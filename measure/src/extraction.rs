//! `cargo evals extraction`: arguments of functions, extracted by a real model and compared with the values that people accept.

use std::path::{Path, PathBuf};

use formwork::config::{Config, Named, TargetList};
use formwork::extract::{Backend, Extractor};
use formwork::providers::Providers;
use formwork_core::Usage;
use serde_json::Value;

use crate::bench::runtime;
use crate::corpora::{rows, text};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The rows, each with `messages`, `function`, `schema` and `accepted`
    #[arg(long, default_value = "../shared/corpora/extraction_bfcl.jsonl")]
    rows: PathBuf,
    /// The configuration with the model
    #[arg(long, default_value = "examples/servers.toml")]
    config: PathBuf,
    /// A provider, list or alias of the configuration
    #[arg(long, default_value = "llama-server")]
    provider: String,
    /// The number of rows
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// The temperature of all calls, 0 to 2
    #[arg(long, default_value_t = 0.0)]
    temperature: f64,
    /// Print each row: its result, its value or error, and its output tokens
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Default)]
struct Score {
    rows: usize,
    valid: usize,
    right: usize,
    calls: usize,
    usage: Usage,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let runtime = runtime().map_err(|error| format!("the runtime cannot be started: {error}"))?;
    let mut rows = rows(&args.rows)?;
    rows.truncate(args.count);
    let score = runtime.block_on(async {
        let backends = backends(&args.config, &args.provider).await?;
        let mut score = Score::default();
        for row in &rows {
            score.row(args, &backends, row).await?;
        }
        Ok::<_, String>(score)
    })?;
    let Score { rows, valid, right, calls, usage } = score;
    let tokens = usage.output_tokens;
    println!(
        "{rows} rows: {valid} valid, {right} right, {calls} calls, {tokens} output tokens, {} for each right answer",
        tokens.checked_div(right as u64).map_or_else(|| "none".to_owned(), |each| each.to_string())
    );
    Ok(())
}

/// Returns the targets of a name in a configuration, with no memory of earlier runs.
pub(crate) async fn backends(file: &Path, name: &str) -> Result<Vec<Backend>, String> {
    let config = Config::load(file).map_err(|error| error.to_string())?;
    let list = match config.named(name).map_err(|error| error.to_string())? {
        Named::Provider(section) => {
            TargetList { targets: vec![section.name.clone()], order: None, weights: None }
        }
        Named::List(list) => list.clone(),
        named => return Err(format!("{named:?} is no provider or list of {}", file.display())),
    };
    let backends = Providers::builtin().probed_list(&config, &list).await;
    backends.map_err(|error| error.to_string())
}

impl Score {
    async fn row(&mut self, args: &Args, backends: &[Backend], row: &Value) -> Result<(), String> {
        let config = Config::load(&args.config).map_err(|error| error.to_string())?;
        let builder = Extractor::<Value>::for_document(text(&row["function"], "name"), row["schema"].clone());
        let builder = config.defaults().apply(builder).with_temperature(args.temperature);
        let builder = backends.iter().cloned().fold(builder, |builder, target| builder.with_target(target));
        let extractor = builder.build().map_err(|error| format!("{}: {error}", text(row, "id")))?;
        let question =
            row["messages"].as_array().into_iter().flatten().map(|message| text(message, "content"));
        let question = question.collect::<Vec<_>>().join("\n");
        let input = format!("{}\n{question}", text(&row["function"], "description"));
        let extracted = extractor.extract(input).await;
        let (calls, usage) = match &extracted {
            Ok(outcome) => (outcome.calls().len(), outcome.usage()),
            Err(error) => (error.calls().len(), error.usage()),
        };
        let is_right = extracted.as_ref().is_ok_and(|outcome| is_accepted(&outcome.value, &row["accepted"]));
        self.rows += 1;
        self.valid += usize::from(extracted.is_ok());
        self.right += usize::from(is_right);
        self.calls += calls;
        self.usage = self.usage.plus(usage);
        if args.verbose {
            let result = match (&extracted, is_right) {
                (Ok(_), true) => "right",
                (Ok(_), false) => "wrong",
                (Err(_), _) => "error",
            };
            let told = extracted.map_or_else(|error| error.to_string(), |outcome| outcome.value.to_string());
            println!("{} {result} {calls} {} {told}", text(row, "id"), usage.output_tokens);
        }
        Ok(())
    }
}

/// Returns whether each member is one of the accepted values of its name, and each name without an accepted absence is there.
fn is_accepted(value: &Value, accepted: &Value) -> bool {
    let (Some(members), Some(accepted)) = (value.as_object(), accepted.as_object()) else { return false };
    let may_be_absent =
        |values: &Value| values.as_array().is_some_and(|values| values.iter().any(|one| one == ""));
    members.iter().all(|(name, value)| {
        let values = accepted.get(name).and_then(Value::as_array);
        values.is_some_and(|values| values.iter().any(|one| is_equal(value, one)))
    }) && accepted.iter().all(|(name, values)| members.contains_key(name) || may_be_absent(values))
}

/// Compares as the benchmark does: texts by their lower-case letters without spaces and ` ,./-_*^`, numbers by their value, and
/// members of nested objects by their lists of accepted values.
fn is_equal(value: &Value, accepted: &Value) -> bool {
    match (value, accepted) {
        (Value::String(value), Value::String(accepted)) => letters(value) == letters(accepted),
        (Value::Number(value), Value::Number(accepted)) => value.as_f64() == accepted.as_f64(),
        (Value::Array(values), Value::Array(accepted)) => {
            values.len() == accepted.len()
                && values.iter().zip(accepted).all(|(value, one)| is_equal(value, one))
        }
        (Value::Object(_), Value::Object(_)) => is_accepted(value, accepted),
        _ => value == accepted,
    }
}

fn letters(text: &str) -> String {
    let letters = text.chars().filter(|letter| !" ,./-_*^".contains(*letter));
    letters.flat_map(char::to_lowercase).map(|letter| if letter == '\'' { '"' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_accepted;

    #[test]
    fn a_value_counts_where_each_member_is_accepted_and_none_is_missing() {
        let accepted =
            json!({"base": [10], "unit": ["units", ""], "names": [["A", "b c"]], "of": [{"x": [1, 2]}]});
        let value = |unit| json!({"base": 10.0, "unit": unit, "names": ["a", "B_C"], "of": {"x": 2}});
        assert!(is_accepted(&value("Units"), &accepted));
        assert!(!is_accepted(&value("cm"), &accepted));
        for (change, is_right) in [
            (json!({"unit": null}), true),
            (json!({"base": null}), false),
            (json!({"base": 11}), false),
            (json!({"names": ["a"]}), false),
            (json!({"of": {"x": 3}}), false),
            (json!({"other": 1}), false),
        ] {
            let mut changed = value("units");
            let members = changed.as_object_mut().unwrap();
            for (name, value) in change.as_object().unwrap() {
                members.insert(name.clone(), value.clone());
            }
            members.retain(|_, value| !value.is_null());
            assert_eq!(is_accepted(&changed, &accepted), is_right, "{changed}");
        }
    }
}
