//! A rack that this process has joined, attached to or started, and its names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use apps::kv::{Error as StoreError, KvConfig, KvStore};
use apps::named::{Error as NotStored, Rooted};
use apps::objects::{ObjectStore, ObjectStoreConfig, Sabres};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rackmem::{
    Discipline, LockedRegions, NameError, NameMode, NamedSpec, NodeHandle, NodeId, RackFile, Region, Up,
};

use crate::calls::Shared;
use crate::dict::{Dict, InPlace, Store};
use crate::errors::{Differs, Raised as _, failed};
use crate::locked::Locked;
use crate::memory::Memory;
use crate::objects::Objects;
use crate::regions::Regions;
use crate::words::Words;

/// A rack, and this process's place in it.
#[pyclass(module = "rackmem._rackmem", frozen, subclass)]
pub(crate) struct Rack {
    shared: Arc<Shared>,
    /// How it was opened: a worker opens it so again.
    #[pyo3(get)]
    file: Option<PathBuf>,
    #[pyo3(get)]
    node: u16,
    #[pyo3(get)]
    nodes: usize,
    /// Only joined processes map memory.
    #[pyo3(get)]
    joined: bool,
    name: String,
    /// How many nodes, the first ones, do not come and go, if not all.
    keepers: Option<usize>,
}

/// Starts a switch and nodes as processes of this machine, and joins them as the last node.
#[pyfunction]
pub(crate) fn up(
    py: Python<'_>,
    nodes: u16,
    seats: u16,
    memory: Option<u64>,
    cache: Option<u64>,
    copies: Option<u64>,
    command: Option<PathBuf>,
) -> PyResult<Rack> {
    let up = Up { nodes, seats, command: command.as_deref(), cache, memory, copies };
    let (rack, processes) = py.detach(|| rackmem::Rack::up_with(&up)).map_err(failed)?;
    let file = processes.file().map_err(failed)?;
    let (path, name) = (file.runtime.join("rack.toml"), file.name);
    let joined = true;
    let nodes = rack.config().nodes;
    let (node, keepers) = (rack.here().id().0, rack.config().name_nodes);
    let shared = Arc::new(Shared::new(rack, Some(processes)));
    Ok(Rack { shared, file: Some(path), node, nodes, joined, name, keepers })
}

fn file_at(path: &Path) -> PyResult<RackFile> {
    RackFile::read(path).map_err(failed)
}

/// How many nodes the rack of a file has.
#[pyfunction]
pub(crate) fn nodes_of(file: PathBuf) -> PyResult<usize> {
    Ok(file_at(&file)?.config.nodes)
}

/// Joins the rack of a file as one of its nodes.
#[pyfunction]
pub(crate) fn join(py: Python<'_>, file: PathBuf, node: u16) -> PyResult<Rack> {
    let read = file_at(&file)?;
    let rack = py.detach(|| rackmem::Rack::join(&read, NodeId(node))).map_err(failed)?;
    Ok(Rack::of(rack, file, read.name, true))
}

/// Uses a node's daemon on this machine.
#[pyfunction]
pub(crate) fn attach(py: Python<'_>, file: PathBuf, node: u16) -> PyResult<Rack> {
    let read = file_at(&file)?;
    let rack = py.detach(|| rackmem::Rack::attach(&read, NodeId(node))).map_err(failed)?;
    Ok(Rack::of(rack, file, read.name, false))
}

impl Rack {
    fn of(rack: rackmem::Rack, file: PathBuf, name: String, joined: bool) -> Self {
        let (node, nodes) = (rack.here().id().0, rack.config().nodes);
        let keepers = rack.config().name_nodes;
        Self {
            shared: Arc::new(Shared::new(rack, None)),
            file: Some(file),
            node,
            nodes,
            joined,
            name,
            keepers,
        }
    }
}

impl Rack {
    /// Calls with a handle that allocates with copies meanwhile, if it is to.
    fn keeping<R: Send>(
        &self,
        py: Python<'_>,
        copies: bool,
        call: impl FnOnce(&mut NodeHandle) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        self.shared.call(py, |handle| {
            handle.keep_copies(copies).map_err(|why| why.raised())?;
            let done = call(handle);
            handle.keep_copies(false).expect("no copies can always be");
            done
        })?
    }
}

/// A store with a name, made if it is not there and may be.
fn opened_or<S: Rooted<Error = StoreError>>(
    handle: &mut NodeHandle,
    name: &str,
    config: &S::Config,
    create: bool,
) -> Result<S, NotStored<StoreError>> {
    if create { apps::named::open_or(handle, name, config) } else { apps::named::open(handle, name) }
}

/// The same of objects.
fn opened(
    handle: &mut NodeHandle,
    name: &str,
    config: &ObjectStoreConfig,
    create: bool,
) -> Result<InPlace, NotStored<StoreError>> {
    opened_or(handle, name, config, create).map(InPlace::new)
}

#[pymethods]
impl Rack {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// True if it was left.
    #[getter]
    fn closed(&self) -> bool {
        self.shared.open().is_err()
    }

    /// At the end of the process: nobody accesses anything any more.
    fn _leave_now(&self, py: Python<'_>) {
        if let Ok(open) = self.shared.open() {
            py.detach(|| open.leave_now());
        }
    }

    fn _close(&self, py: Python<'_>) {
        let last = self.shared.close();
        py.detach(|| drop(last));
    }

    /// Coherent memory under a name, of so many bytes; 0: of what is there. Whether it shall have copies, is made if it is not there, and
    /// is mapped.
    fn _memory(
        &self,
        py: Python<'_>,
        name: &str,
        bytes: usize,
        tag: &str,
        how: (bool, bool, bool),
    ) -> PyResult<Memory> {
        let (copies, create, map) = how;
        let region = self.keeping(py, copies && create, |handle| {
            let named = handle.named::<Region>(name).tag(tag, 0);
            if create { named.open_or(|| bytes) } else { named.open() }.map_err(|why| why.raised())
        })?;
        let open = self.shared.open()?;
        let mapped =
            if map { Some(py.detach(|| open.map(&region)).map_err(|why| why.raised())?) } else { None };
        let (at, file) = ((region.addr(), region.len()), self.file.clone());
        Ok(Memory::new(Arc::clone(&self.shared), open, (name.to_owned(), file), at, mapped))
    }

    fn _locked(
        &self,
        py: Python<'_>,
        name: &str,
        initial: Vec<u8>,
        tag: &str,
        copies: bool,
        create: bool,
    ) -> PyResult<Locked> {
        let len = initial.len();
        let spec = NamedSpec { tag: tag.to_owned(), ..NamedSpec::untyped(Discipline::Locked, len as u64, 1) };
        let mode = if create { NameMode::OpenOr } else { NameMode::Open };
        let info = self.keeping(py, copies && create, |handle| {
            handle.name_as(name, mode, spec, initial).map_err(|why| why.raised())
        })?;
        Ok(Locked::new(Arc::clone(&self.shared), name.to_owned(), (info.addr, len), info.making))
    }

    fn _regions(
        &self,
        py: Python<'_>,
        name: &str,
        room: usize,
        copies: bool,
        create: bool,
    ) -> PyResult<Regions> {
        let lock = self.keeping(py, copies && create, |handle| {
            let named = handle.named::<LockedRegions>(name);
            if create { named.open_or(|| room) } else { named.open() }.map_err(|why| why.raised())
        })?;
        Ok(Regions::new(Arc::clone(&self.shared), name.to_owned(), lock))
    }

    fn _words(&self, py: Python<'_>, name: &str, count: usize, create: bool) -> PyResult<Words> {
        let words = self.shared.call(py, |handle| {
            let named = handle.named::<rackmem::Words<u64>>(name);
            if create { named.open_or(|| count) } else { named.open() }
        })?;
        let words = words.map_err(|why| why.raised())?;
        Ok(Words::new(Arc::clone(&self.shared), name.to_owned(), words))
    }

    fn _objects(
        &self,
        py: Python<'_>,
        name: &str,
        slots: usize,
        size: usize,
        create: bool,
    ) -> PyResult<Objects> {
        let mode = if create { NameMode::OpenOr } else { NameMode::Open };
        let opened = self.shared.call(py, |handle| {
            let spec = NamedSpec::untyped(Discipline::Object, size as u64, slots as u64);
            let info = handle.name_as(name, mode, spec, Vec::new())?;
            Ok(handle.byte_objects_at(info.addr)?)
        })?;
        let objects = opened.map_err(rackmem::NameError::raised)?;
        Ok(Objects::new(Arc::clone(&self.shared), name.to_owned(), objects))
    }

    /// A dictionary; of objects, if the longest key and value are given.
    fn _dict(
        &self,
        py: Python<'_>,
        name: &str,
        expected_keys: u64,
        longest: Option<(usize, usize)>,
        how: (bool, bool),
    ) -> PyResult<Dict> {
        let (copies, create) = how;
        let homes = self.keepers.map(|keepers| keepers as u16);
        let in_place = longest.map(|(key_bytes, value_bytes)| ObjectStoreConfig {
            expected_keys,
            key_bytes,
            value_bytes,
            homes,
            ..ObjectStoreConfig::default()
        });
        let cached = KvConfig { expected_keys, homes, ..KvConfig::default() };
        let store = self.keeping(py, copies && create, |handle| {
            let store = match &in_place {
                Some(config) => opened(handle, name, config, create).map(Store::InPlace),
                None => match opened_or(handle, name, &cached, create) {
                    // It is of objects, and nobody has said that it must not.
                    Err(NotStored::Name(NameError::Differs { .. })) => {
                        opened(handle, name, &ObjectStoreConfig::default(), false).map(Store::InPlace)
                    }
                    store => store.map(Store::Cached),
                },
            };
            store.map_err(|why| why.raised())
        })?;
        if let (Store::InPlace(there), Some(longest)) = (&store, longest)
            && there.longest() != longest
        {
            let (key, value) = there.longest();
            return Err(Differs::new_err(format!(
                "{name:?} is a dictionary of keys of up to {} bytes and values of up to {}: open it without sizes, as it is, or take another name",
                key - 1,
                value - 1
            )));
        }
        Ok(Dict::new(Arc::clone(&self.shared), name.to_owned(), store))
    }

    /// Waits until what this node has written to what has copies survives it.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.call(py, |handle| handle.sync())?.map_err(|why| why.raised())
    }

    /// What has a name: its kind, its type, the bytes and number of its elements, and where it is.
    fn info<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let info = self.shared.call(py, |handle| {
            let home = handle.home_of_name(name);
            handle.name_info(name).map(|info| (info, home))
        })?;
        let (info, home) = info.map_err(|why| why.raised())?;
        let shown = PyDict::new(py);
        shown.set_item("name", &info.name)?;
        shown.set_item("kind", format!("{:?}", info.spec.discipline).to_lowercase())?;
        shown.set_item("type", &info.spec.tag)?;
        shown.set_item("bytes", info.spec.value_len())?;
        shown.set_item("count", info.spec.count)?;
        shown.set_item("home", home.0)?;
        shown.set_item("maker", info.maker.0)?;
        shown.set_item("opened", info.opened)?;
        Ok(shown)
    }

    /// The names that begin so, in their order.
    #[pyo3(signature = (prefix = ""))]
    fn names(&self, py: Python<'_>, prefix: &str) -> PyResult<Vec<String>> {
        let names = self.shared.call(py, |handle| handle.names(prefix))?;
        Ok(names.map_err(|why| why.raised())?.into_iter().map(|info| info.name).collect())
    }

    /// Takes a name away, and frees what it names. Whoever uses it is told that it is lost.
    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let removed = self.shared.call(py, |handle| {
            // Of a dictionary more than the root is to be freed.
            for remove in [apps::named::remove::<KvStore>, apps::named::remove::<ObjectStore<Sabres>>] {
                match remove(handle, name) {
                    Err(NotStored::Name(NameError::Differs { .. })) => {}
                    removed => return removed,
                }
            }
            handle.remove_name(name).map_err(NotStored::Name)
        })?;
        removed.map_err(|why| why.raised())
    }
}
