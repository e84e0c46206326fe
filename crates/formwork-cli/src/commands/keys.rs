//! `formwork keys`: who may ask the gateway, and for how much.

use clap::{Subcommand, ValueEnum};
use formwork_core::Time;
use formwork_ledger::{Key, KeyRole, NewKey, Secret};
use serde_json::json;

use crate::exit::{Failed, Status};
use crate::ledger::{Place, dollars, duration, failed, moment, now, usd};
use crate::output;
use crate::stderr::say;

const AFTER_HELP: &str = "\
Examples:
  formwork keys add alice --budget 5.00 --rpm 60 --models gpt-5-mini,local --expires 90d
  formwork keys list
  formwork keys rotate alice
  formwork keys revoke alice

A key is shown once; the ledger keeps its SHA-256 alone. Budgets are US dollars. What a call may cost is reserved before the call, and
counts as spent until it is settled. A service that runs notices a change within a second.

Exit codes:
  0    done
  1    there is no key of this name
  2    wrong usage, or a file that is no ledger or cannot be written";

/// Add, list, revoke and rotate the API keys of the gateway
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    place: Place,
    /// Print JSON, one object a line
    #[arg(long, global = true)]
    json: bool,
}

const ADD: &str = "\
Examples:
  formwork keys add alice --budget 5.00 --rpm 60 --models gpt-5-mini,local --expires 90d
  formwork keys add ops --role admin
  KEY=$(formwork keys add ci)

Exit codes: 0 the key is printed, 2 wrong usage, a name that is taken, or a file that is no ledger.";

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
        /// Its name, for people
        name: String,
        /// How many US dollars may be spent with it, such as 5.00 [default: without limit]
        #[arg(long, value_name = "USD", value_parser = usd)]
        budget: Option<u64>,
        /// How many requests a minute may be made with it [default: without limit]
        #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..))]
        rpm: Option<u32>,
        /// The models, targets and aliases that may be asked, with commas between them [default: all]
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        models: Vec<String>,
        /// After how long it ends, such as 90d, 12h or 30m [default: never]
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<u64>,
        /// The rights of its holder: to make requests and see the own runs, or to see everything
        #[arg(long, value_enum, default_value_t)]
        role: RoleName,
    },
    /// List the keys, with what they may spend and have spent
    #[command(after_help = LIST)]
    List,
    /// End a key for good
    #[command(after_help = REVOKE)]
    Revoke {
        /// Its name
        name: String,
    },
    /// Give a key a new secret and print it; the old one ends at once
    #[command(after_help = ROTATE)]
    Rotate {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum RoleName {
    #[default]
    Client,
    Admin,
}

pub(crate) fn run(args: &Args) -> Result<Status, Failed> {
    match &args.action {
        Action::Add { name, budget, rpm, models, expires, role } => {
            let role = match role {
                RoleName::Client => KeyRole::Client,
                RoleName::Admin => KeyRole::Admin,
            };
            let now = now();
            let expires = expires.map(|millis| Time(now.0.saturating_add(millis)));
            let models = models.iter().map(|model| model.trim().to_owned()).collect();
            let new = NewKey { name: name.clone(), budget: *budget, rpm: *rpm, models, expires, role };
            let (key, secret) = args.place.make()?.add_key(new, now).map_err(failed)?;
            show(&key, &secret, args.json)?;
        }
        Action::List => {
            let keys = args.place.open()?.keys().map_err(failed)?;
            if keys.is_empty() && !args.json {
                say!("the ledger has no keys: `formwork keys add NAME` adds one");
            }
            for key in &keys {
                if args.json {
                    output::row(key)?;
                } else {
                    output::line(words(key))?;
                }
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

/// Prints a secret alone on standard output, so that a script can take it.
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
    let (spent, held) = (dollars(Some(key.spent)), dollars(Some(key.held)));
    add(match key.budget {
        Some(budget) => format!("{spent} of {} spent", dollars(Some(budget))),
        None => format!("{spent} spent"),
    });
    if key.held > 0 {
        add(format!("{held} reserved"));
    }
    if let Some(rpm) = key.rpm {
        add(format!("{rpm} requests a minute"));
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
