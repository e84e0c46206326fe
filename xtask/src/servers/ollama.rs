//! Ollama from the PATH, else a pinned version, built from its Go module.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Address, MODEL, Place, Server, headers, http, place, python};

/// The version whose behaviour the tests rely on. Newer versions start llama.cpp as a program that the Go module does not
/// contain.
const VERSION: &str = "0.17.4";
const MODULE: &str = "github.com/ollama/ollama";

/// Returns the program, and builds it if there is none.
pub(super) fn program(place: &Place) -> Result<PathBuf, String> {
    if let Some(found) = on_path("ollama") {
        Server::Ollama.say(&format!("takes {}", found.display()));
        return Ok(found);
    }
    let folder = place.folder().join(format!("ollama-{VERSION}"));
    let program = folder.join("ollama");
    if !program.is_file() {
        build(place, &folder)?;
    }
    Ok(program)
}

/// Builds Ollama into a folder. Go writes only complete programs there.
fn build(place: &Place, folder: &Path) -> Result<(), String> {
    let needed = [("go", "golang-go"), ("gcc", "gcc"), ("g++", "g++")];
    for (name, package) in needed {
        if on_path(name).is_none() {
            return Err(format!(
                "there is no `{name}` on the PATH: Ollama {VERSION} is built from its Go module with Go 1.24 or later, \
                 gcc and g++; install it (Debian: {package}), or put an `ollama` on the PATH"
            ));
        }
    }
    if python::offline() {
        return Err("there is no `ollama` on the PATH and FORMWORK_OFFLINE is set: unset it".to_owned());
    }
    let headers = headers::folder(place)?;
    Server::Ollama.say(&format!("builds {MODULE} {VERSION}, once, in 2 to 5 minutes"));
    let flags = compiler_flags(&headers);
    let mut go = Command::new("go");
    // Without this flag the program reports the version 0.0.0.
    go.args(["install", "-ldflags", &format!("-X={MODULE}/version.Version={VERSION}")]);
    go.arg(format!("{MODULE}@v{VERSION}"));
    go.env("GOBIN", folder).env("CGO_ENABLED", "1").env("CGO_CFLAGS", &flags).env("CGO_CXXFLAGS", &flags);
    let output = go.current_dir(place.folder()).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start go: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = place::tail(&String::from_utf8_lossy(&output.stderr));
    Err(format!("go cannot build {MODULE} {VERSION}:\n{words}"))
}

/// Returns the compiler flags of C and C++: optimized for this machine, because the program runs only here.
fn compiler_flags(headers: &Path) -> String {
    #[cfg(target_arch = "x86_64")]
    let modern = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let modern = false;
    let level = if modern { " -march=x86-64-v3" } else { "" };
    // Go splits flags like a shell, so a folder with a space in its name needs quotes.
    format!("-O3{level} \"-I{}\"", headers.display())
}

/// Returns the command that starts the server.
pub(super) fn command(place: &Place, program: &Path, address: &Address) -> Command {
    let mut command = client(place, program, address);
    command.arg("serve").env("OLLAMA_MODELS", home(place).join("models")).env("OLLAMA_NUM_PARALLEL", "1");
    command
}

/// Creates the model from its file. An existing model of the same name is replaced.
pub(super) fn create(place: &Place, program: &Path, address: &Address, weights: &Path) -> Result<(), String> {
    let recipe = place.folder().join("Modelfile");
    place::write(&recipe, &modelfile(weights))?;
    let mut command = client(place, program, address);
    command.args(["create", MODEL, "-f"]).arg(&recipe).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("cannot create {MODEL}:\n{}", place::tail(&String::from_utf8_lossy(&output.stderr))))
}

/// Returns the model's definition with one thread. Several threads busy-wait for each other, so on a busy machine one thread is
/// many times as fast.
fn modelfile(weights: &Path) -> String {
    format!("FROM {}\nPARAMETER num_thread 1\n", weights.display())
}

fn client(place: &Place, program: &Path, address: &Address) -> Command {
    let mut command = Command::new(program);
    // Ollama keeps a key and settings in the home folder. Tests must use neither.
    command.env("HOME", home(place)).env("OLLAMA_HOST", address.authority());
    command
}

fn home(place: &Place) -> PathBuf {
    place.folder().join("ollama")
}

/// Returns the first program of this name on the PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

pub(super) fn version(address: &Address) -> Option<String> {
    let answer = http::get(address, "/api/version")?;
    Some(format!("Ollama {}", answer.get("version")?.as_str()?))
}

pub(super) fn has_model(address: &Address) -> bool {
    let tags = http::get(address, "/api/tags").unwrap_or_default();
    let models = tags.get("models").and_then(Value::as_array).into_iter().flatten();
    models.into_iter().any(|model| {
        let name = model.get("name").and_then(Value::as_str).unwrap_or_default();
        name.split_once(':').map_or(name, |(name, _)| name) == MODEL
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_space_stays_one_flag() {
        let flags = compiler_flags(Path::new("a b/include"));
        assert!(flags.starts_with("-O3") && flags.ends_with(" \"-Ia b/include\""), "{flags}");
    }

    #[test]
    fn a_model_is_one_file_and_one_thread() {
        assert_eq!(modelfile(Path::new("x.gguf")), "FROM x.gguf\nPARAMETER num_thread 1\n");
    }
}
