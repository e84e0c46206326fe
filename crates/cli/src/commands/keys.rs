//! `formwork keys`: manages the API keys of `formwork serve`.

use clap::Subcommand;
use formwork_core::Time;
use formwork_ledger::{Key, KeyRole, NewKey, Period, Secret};
use serde_json::json;

use crate::exit::{Failed, Status};
use crate::flags::one_of;
use crate::ledger::{Place, dollars, duration, failed, moment, now, usd};
use crate::output;
use crate::stderr::say;

const AFTER_HELP: &str = "\
Examples:
  formwork keys add alice --budget 5.00 --per day --rpm 60 --models primary,fast --expires 90d
  formwork keys list
  formwork keys rotate alice
  formwork keys revoke alice

A key is printed once; the ledger stores only its SHA-256 digest. Budgets are in US dollars. The maximum cost of a call is reserved
before the call, and counts as spent until the call ends. A running service applies changes within a second.

Exit codes:
  0    done
  1    there is no key of this name
  2    wrong usage, or a file that is no ledger or not writable";

/// Add, list, revoke and rotate the API keys of `formwork serve`
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    place: Place,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    json: bool,
}

const ADD: &str = "\
Examples:
  formwork keys add alice --budget 5.00 --per day --rpm 60 --models primary,fast --expires 90d
  formwork keys add bob --tpm 100000 --max-open 4
  formwork keys add ops --role admin
  KEY=$(formwork keys add ci)

Exit codes: 0 the key is printed, 2 wrong usage, a name that exists, or a file that is no ledger.";

const LIST: &str = "\
Examples:
  formwork keys list
  formwork keys list --json

Exit codes: 0 the keys are printed, 2 wrong usage, or a file that is no ledger.";

const REVOKE: &str = "\
Examples:
  formwork keys revoke alice

Exit codes: 0 the key has ended, 1 there is no such key, 2 wrong usage, or a file that is no ledger.";

const ROTATE: &str = "\
Examples:
  formwork keys rotate alice

Exit codes: 0 the new key is printed, 1 there is no such key, 2 wrong usage, a key that was revoked, or a file that is no ledger.";

#[derive(Subcommand)]
enum Action {
    /// Add a key and print it
    #[command(after_help = ADD)]
    Add {
        /// The name of the key, for people
        name: String,
        /// Maximum cost of its requests in US dollars, such as 5.00 [default: no limit]
        #[arg(long, value_name = "USD", value_parser = usd)]
        budget: Option<u64>,
        /// Make the budget whole again at the beginning of each day, week or month (UTC) [default: never]
        #[arg(long, value_name = "PERIOD", requires = "budget", value_parser = one_of::<Period, 3>(["day", "week", "month"]))]
        per: Option<Period>,
        /// Maximum number of tokens per minute, of prompts and answers together; open requests may go beyond it, and later ones
        /// wait for that [default: no limit]
        #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
        tpm: Option<u32>,
        /// Maximum number of requests that are open at once [default: no limit]
        #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..))]
        max_open: Option<u32>,
        /// Maximum number of requests per minute [default: no limit]
        #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..))]
        rpm: Option<u32>,
        /// The allowed targets and aliases by their names in the configuration, separated by commas [default: all]
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        models: Vec<String>,
        /// The lifetime of the key, such as 90d, 12h or 30m [default: no end]
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<u64>,
        /// client: make requests and see its own runs; admin: also see everything
        #[arg(long, default_value = "client", value_parser = one_of::<KeyRole, 2>(["client", "admin"]))]
        role: KeyRole,
    },
    /// List the keys with their budgets and spending
    #[command(after_help = LIST)]
    List,
    /// Revoke a key permanently
    #[command(after_help = REVOKE)]
    Revoke {
        /// The name of the key
        name: String,
    },
    /// Replace the secret of a key and print the new one; the old one ends at once
    #[command(after_help = ROTATE)]
    Rotate {
        /// The name of the key
        name: String,
    },
}

pub(crate) fn run(args: &Args) -> Result<Status, Failed> {
    match &args.action {
        Action::Add { name, budget, per, rpm, tpm, max_open, models, expires, role } => {
            let now = now();
            let expires = expires.map(|millis| Time(now.0.saturating_add(millis)));
            let models = models.iter().map(|model| model.trim().to_owned()).collect();
            let new = NewKey {
                name: name.clone(),
                budget: *budget,
                period: *per,
                rpm: *rpm,
                tpm: *tpm,
                max_open: *max_open,
                models,
                expires,
                role: *role,
            };
            let (key, secret) = args.place.make()?.add_key(new, now).map_err(failed)?;
            show(&key, &secret, args.json)?;
        }
        Action::List => {
            let keys = args.place.read()?.keys().map_err(failed)?;
            if keys.is_empty() && !args.json {
                say!("the ledger has no keys: `formwork keys add NAME` adds one");
            }
            for key in &keys {
                output::either(args.json, key, || words(key) + "\n")?;
            }
        }
        Action::Revoke { name } => {
            let key = args.place.open()?.revoke_key(name, now()).map_err(failed)?;
            if args.json {
                output::row(&key)?;
            } else {
                say!("the key `{name}` has ended");
            }
        }
        Action::Rotate { name } => {
            let (key, secret) = args.place.open()?.rotate_key(name).map_err(failed)?;
            show(&key, &secret, args.json)?;
        }
    }
    Ok(Status::Ok)
}

/// Prints only the secret on standard output, so that a script can read it.
fn show(key: &Key, secret: &Secret, json: bool) -> Result<(), Failed> {
    if json {
        return output::row(&json!({"secret": secret.reveal(), "key": key}));
    }
    say!("{}\nThis is the only time that the key is shown:", words(key));
    output::line(secret.reveal())
}

fn words(key: &Key) -> String {
    let mut words = format!("{}  {}…  {}", key.name, key.hint, key.role.name());
    let mut add = |text: String| {
        words.push_str("  ");
        words.push_str(&text);
    };
    let (spent, held) = (dollars(Some(key.spent_in_period(now()))), dollars(Some(key.held)));
    add(match (key.budget, key.period) {
        (Some(budget), Some(period)) => {
            format!("{spent} of {} spent this {}", dollars(Some(budget)), period.name())
        }
        (Some(budget), None) => format!("{spent} of {} spent", dollars(Some(budget))),
        (None, _) => format!("{spent} spent"),
    });
    if key.held > 0 {
        add(format!("{held} reserved"));
    }
    if let Some(rpm) = key.rpm {
        add(format!("{rpm} requests a minute"));
    }
    if let Some(tpm) = key.tpm {
        add(format!("{tpm} tokens a minute"));
    }
    if let Some(max_open) = key.max_open {
        add(format!("{max_open} open requests"));
    }
    if !key.models.is_empty() {
        add(format!("models {}", key.models.join(", ")));
    }
    match (key.revoked, key.expires) {
        (Some(revoked), _) => add(format!("revoked {} UTC", moment(revoked))),
        (None, Some(expires)) if expires <= now() => add(format!("expired {} UTC", moment(expires))),
        (None, Some(expires)) => add(format!("until {} UTC", moment(expires))),
        (None, None) => {}
    }
    words
}
