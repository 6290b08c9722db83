// Files that were dropped, those inside folders too, with their places in `place`.

export async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...transfer.files];
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found.filter((file) => !file.name.startsWith("."));
}

async function walk(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    file.place = entry.fullPath.replace(/^\//, "");
    found.push(file);
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) return;
    for (const each of some) await walk(each, found);
  }
}
