//! `rackmem-lab record`: runs the commands that a page names, and writes what they print into it.
//!
//! A page has blocks between `<!-- measured: COMMAND -->` and `<!-- end of measured -->`. What must always hold: nothing
//! outside of the blocks changes, a block is written only when its command has succeeded, and each says which command, of
//! which commit, on which day, on what machine.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use clap::Parser;
use cli::fault::Fault;
use cli::say;

const BEGIN: &str = "<!-- measured: ";
const END: &str = "<!-- end of measured -->";

/// What to record.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Pages with blocks between `<!-- measured: COMMAND -->` and `<!-- end of measured -->`
    #[arg(value_name = "PAGE", required = true)]
    pages: Vec<PathBuf>,

    /// Run only the commands that contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Name the commands, and run none
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    for path in &args.pages {
        let shown = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| Fault::usage(format_args!("cannot read {shown}: {error}")))?;
        let commands = commands(&text).map_err(|why| Fault::usage(format_args!("{shown}: {why}")))?;
        if commands.is_empty() {
            return Err(Fault::usage(format_args!(
                "{shown} has nothing to record: put `{BEGIN}rackmem-lab bench hit -->` and `{END}` where the result goes"
            )));
        }
        let mut text = text;
        for command in commands.iter().filter(|command| command.contains(&args.only)) {
            say!("{command}");
            if args.dry_run {
                continue;
            }
            let block = block(command, &output(command)?);
            // Others may have written the page while the command ran.
            text = fs::read_to_string(path).unwrap_or(text);
            text = replaced(&text, command, &block);
            fs::write(path, &text)
                .map_err(|error| Fault::failed(format_args!("cannot write {shown}: {error}")))?;
        }
    }
    Ok(())
}

/// The commands of a page's blocks, in their order.
fn commands(text: &str) -> Result<Vec<String>, String> {
    let mut commands = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(rest) = line.strip_prefix(BEGIN) {
            let command = rest.strip_suffix(" -->").filter(|_| !is_open);
            let command =
                command.ok_or_else(|| format!("line {number}: end the block before with `{END}`"))?;
            commands.push(command.to_owned());
            is_open = true;
        } else if line == END {
            is_open = false;
        }
    }
    if is_open { Err(format!("the last block has no `{END}`")) } else { Ok(commands) }
}

/// The page with another block for this command.
fn replaced(text: &str, command: &str, block: &str) -> String {
    let begin = format!("{BEGIN}{command} -->\n");
    let Some((before, rest)) = text.split_once(&begin) else { return text.to_owned() };
    let Some((_, after)) = rest.split_once(END) else { return text.to_owned() };
    format!("{before}{begin}{block}{END}{after}")
}

/// What stands in a block.
fn block(command: &str, output: &str) -> String {
    let first = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.lines().next().map(str::to_owned).filter(|_| output.status.success())
    };
    let commit = first("git", &["rev-parse", "--short=7", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let is_changed =
        first("git", &["status", "--porcelain", "--untracked-files=no", "crates", "tools"]).is_some();
    let day = first("date", &["-u", "+%F"]).unwrap_or_else(|| "unknown day".to_owned());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or_else(String::new, |(_, model)| format!(" of {model}"));
    let mut text = String::new();
    let changed = if is_changed { " with changes" } else { "" };
    writeln!(text, "Command: `{command}`. Commit {commit}{changed}, {day}, {cores} cores{model}.\n")
        .expect("text grows");
    let output = output.trim_end();
    writeln!(text, "```text\n{output}\n```").expect("text grows");
    text
}

/// What a command prints.
fn output(command: &str) -> Result<String, Fault> {
    let mut words = command.split_whitespace();
    let (name, me) = (words.next().unwrap_or_default(), env::current_exe());
    let beside =
        |name: &str| me.as_ref().ok().and_then(|me| Some(me.parent()?.join(name))).unwrap_or_default();
    let program = match name {
        "rackmem-lab" | "rackmem" => beside(name),
        "cargo" => Path::new("cargo").to_owned(),
        _ => {
            return Err(Fault::usage(format_args!(
                "`{command}` is not run: a measured command begins with rackmem, rackmem-lab or cargo"
            )));
        }
    };
    let failed = |why: &dyn std::fmt::Display| Fault::failed(format_args!("`{command}`: {why}"));
    let output = Command::new(&program).args(words).stderr(Stdio::inherit()).output();
    let output =
        output.map_err(|error| failed(&format_args!("cannot run {}: {error}", program.display())))?;
    if !output.status.success() {
        return Err(failed(&output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| failed(&"its output is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "before\n<!-- measured: rackmem-lab bench hit -->\nold\n<!-- end of measured -->\nafter\n";

    #[test]
    fn a_block_is_replaced_and_nothing_else() {
        assert_eq!(commands(PAGE).unwrap(), ["rackmem-lab bench hit"]);
        let page = replaced(PAGE, "rackmem-lab bench hit", "new\n");
        assert_eq!(page, PAGE.replace("old", "new"));
        assert_eq!(replaced(PAGE, "rackmem-lab bench miss", "new\n"), PAGE);
    }

    #[test]
    fn a_block_without_an_end_is_refused() {
        assert!(commands(&PAGE.replace(END, "")).is_err());
        assert!(commands(&PAGE.replace("old", "<!-- measured: rackmem status -->")).is_err());
    }

    #[test]
    fn a_block_says_where_it_is_from() {
        let text = block("rackmem-lab bench hit", "a table\n\n");
        assert!(text.starts_with("Command: `rackmem-lab bench hit`. Commit "), "{text}");
        assert!(text.contains(" cores") && text.ends_with("\n```text\na table\n```\n"), "{text}");
    }

    #[test]
    fn only_our_own_commands_are_run() {
        assert!(matches!(output("rm -r nothing"), Err(Fault::Usage(_))));
    }
}
