//! Racks whose switch's programs are in the kernel, each place in a network of its own.
//!
//! Skipped where the machine does not permit that (it takes root); with `RACKMEM_HOSTS=required` that is a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{env, fs, thread};

use check::AtEnd;
use rackmem::{Discipline, NodeId, Rack, RackFile};

use super::rig::{Home, eventually, networks, text};
use crate::shell::can_have_kernel;

#[test]
fn a_rack_over_wires_comes_up_with_its_switch_in_the_kernel_and_leaves_nothing() {
    if !can_have_kernel() {
        return;
    }
    let home = Home::new("wire");
    let refused = home.mistake(&["up", "--transport", "wire", "--metrics", "127.0.0.1:1"], 2);
    assert!(refused.contains("leave it out with --transport wire"), "{refused}");
    let up = home.up(&["--nodes", "3", "--transport", "wire", "--restart"]);
    // Attached by a socket in the file system, from a network that has no way to theirs.
    let file = RackFile::read(home.rack_file()).unwrap();
    let rack = Rack::attach(&file, NodeId(0)).unwrap();
    let mut here = rack.here();
    let lock = rackmem::Locked::new(&mut here, NodeId(1), 0_u64).unwrap();
    let word = here.alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let count = |here: &mut rackmem::NodeHandle| {
        *lock.write(here).unwrap() += 1;
        let counted = here.read_word(word).unwrap() + 1;
        here.write_word(word, counted).unwrap();
        (counted, *lock.read(here).unwrap())
    };
    assert_eq!((1..=100).map(|_| count(&mut here)).last(), Some((100, 100)));
    eventually("the programs have seen packets, and say so", || {
        let kernel = &home.status()["switch"]["kernel"];
        let port = |device: &str| serde_json::json!({"device": device, "hook": "tcx/ingress"});
        assert_eq!(kernel["ports"], serde_json::json!(["p0", "p1", "p2"].map(port)));
        ["blocks", "locks"].into_iter().all(|program| kernel[program]["taken"].as_u64() > Some(0))
    });
    assert!(home.output(&["status"]).contains("in the kernel at p0, p1, p2 (tcx/ingress); blocks: "));
    home.kill(&["switch"]);
    eventually("a switch with other programs has the nodes", || {
        home.try_status().is_some_and(|status| {
            status["phase"] == "running"
                && status["nodes"][0]["up"] == true
                && status["nodes"][1]["up"] == true
        })
    });
    assert_eq!((1..=100).map(|_| count(&mut here)).last(), Some((200, 200)));
    drop((here, rack));
    let ended = up.interrupt();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    home.assert_nothing_left();
    let up = home.up(&["--nodes", "2", "--seats", "0", "--transport", "wire"]);
    home.kill(&["node", "--id", "1"]);
    eventually("the switch has declared it dead", || home.status()["nodes"][1]["up"] == false);
    let said = text(&up.interrupt().stderr);
    assert!(said.contains("start it again with: nsenter --net=/proc/"), "{said}");
    home.assert_nothing_left();
    let up = home.up(&["--nodes", "2", "--transport", "wire"]);
    up.signal("KILL");
    eventually("the children end and take the files along", || home.is_clean());
}

#[test]
fn what_is_for_programs_in_the_kernel_is_refused_where_there_are_none() {
    let home = Home::new("no-kernel");
    let text = home.output(&["rack-file", "--nodes", "1", "--port", &super::rig::free_port().to_string()]);
    let file = home.write("rack.toml", &text);
    for (flag, value) in [("--port", "eth1"), ("--hook", "xdp"), ("--keep", "/sys/fs/bpf/rackmem")] {
        let refused = home.mistake(&["switch", "--config", &file, flag, value], 2);
        assert!(refused.contains(&format!("{flag} {value} is for a program in the kernel")), "{refused}");
    }
    let refused = home.mistake(&["switch", "--config", &file, "--hook", "nic"], 2);
    assert!(refused.contains("possible values: tc, xdp"), "{refused}");
}

/// A file system of bpf, as long as this is there.
struct Kept(PathBuf);

impl Kept {
    fn mount(home: &Home) -> Option<Self> {
        let path = home.path("bpf");
        fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount").args(["-t", "bpf", "bpf"]).arg(&path).output();
        let is_mounted = mounted.is_ok_and(|mounted| mounted.status.success());
        assert!(is_mounted || env::var("RACKMEM_HOSTS").as_deref() != Ok("required"), "no such file system");
        is_mounted.then_some(Self(path))
    }

    fn is_empty(&self) -> bool {
        // What the file system has by itself ends so.
        let own = |path: &Path| path.extension().is_some_and(|extension| extension == "debug");
        fs::read_dir(&self.0).unwrap().all(|entry| own(&entry.unwrap().path()))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|it| it.success()) || thread::panicking());
        fs::remove_dir(&self.0).unwrap();
    }
}

/// Starts another switch in the network of the one that `rackmem up` has started.
fn beside(home: &Home, up: u32) -> std::process::Child {
    let mut command = home.within(Command::new("nsenter"));
    command
        .arg(format!("--net={}", networks(up)[0].display()))
        .arg(crate::COMMAND)
        .args(["switch", "--config"]);
    command.arg(home.rack_file()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn kept_programs_go_on_without_their_process_and_the_next_one_takes_them_over() {
    let home = Home::new("kept");
    let Some(kept) = can_have_kernel().then(|| Kept::mount(&home)).flatten() else { return };
    let directory = kept.0.join("rack");
    let keep = directory.to_str().unwrap();
    let refused = home.mistake(&["up", "--keep", keep], 2);
    assert!(refused.contains("add --transport wire"), "{refused}");
    let up = home.up(&["--nodes", "3", "--transport", "wire", "--restart", "--keep", keep]);
    assert_eq!(home.status()["switch"]["kernel"]["kept"], keep);
    let file = RackFile::read(home.rack_file()).unwrap();
    let racks = [0, 1].map(|node| Rack::attach(&file, NodeId(node)).unwrap());
    let word = racks[0].here().alloc(8, NodeId(1), Discipline::Coherent).unwrap();
    let (counted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let _over = AtEnd(&over);
        // Every other step misses: the block is at the other node.
        scope.spawn(|| {
            let mut handles = racks.each_ref().map(Rack::here);
            while !over.load(Ordering::Relaxed) {
                let handle = &mut handles[counted.load(Ordering::Relaxed) as usize % 2];
                let before = handle.read_word(word).unwrap();
                assert_eq!(before, counted.load(Ordering::Relaxed));
                handle.write_word(word, before + 1).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let goes_on = |much: u64| {
            let before = counted.load(Ordering::Relaxed);
            eventually("it is counted on", || counted.load(Ordering::Relaxed) > before + much);
        };
        goes_on(10);
        // It is started again a moment after it was killed: somewhen in that moment nobody is there for long enough.
        eventually("it is counted on while no process is the switch", || {
            home.find(&["switch"]).inspect(|_| home.kill(&["switch"]));
            eventually("it is dead", || home.find(&["switch"]).is_none());
            // What it has not kept goes a moment after it.
            thread::sleep(Duration::from_millis(80));
            let before = counted.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(30));
            let after = counted.load(Ordering::Relaxed);
            let counted_on = home.find(&["switch"]).is_none() && after > before + 2;
            eventually("there is a switch again", || {
                home.try_status().is_some_and(|status| status["phase"] == "running")
            });
            counted_on
        });
        goes_on(10);
        let other = beside(&home, up.id());
        goes_on(10);
        // The one that was there has ended, and is started again, in its turn in the place of that other one.
        let said = text(&other.wait_with_output().unwrap().stderr);
        assert!(said.contains("another process has taken its program over"), "{said}");
        goes_on(10);
    });
    drop(racks);
    let ended = up.interrupt();
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(kept.is_empty(), "they went with the rack");
    drop(kept);
    home.assert_nothing_left();
}

#[test]
fn what_cannot_be_kept_is_refused_and_nothing_of_others_is_taken_away() {
    let home = Home::new("unkept");
    let Some(kept) = can_have_kernel().then(|| Kept::mount(&home)).flatten() else { return };
    // No file system of bpf.
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("blocks-of-somebody"), "").unwrap();
    let refused = home.mistake(&["up", "--transport", "wire", "--keep", elsewhere.to_str().unwrap()], 1);
    assert!(refused.contains("mount -t bpf bpf"), "{refused}");
    fs::remove_file(elsewhere.join("blocks-of-somebody")).unwrap();
    fs::remove_dir(elsewhere).unwrap();
    // Another rack's, which has the same addresses in a network of its own, but not the same nodes: taken over it would not be.
    let keep = kept.0.to_str().unwrap().to_owned();
    let claim = rackmem::dataplane::Claim::make(&kept.0, "10.77.0.9:7400".parse().unwrap(), 1).unwrap();
    let refused = home.mistake(&["up", "--transport", "wire", "--keep", &keep], 1);
    assert!(refused.contains("has the programs of a switch at 10.77.0.9:7400"), "{refused}");
    drop(claim);
}
