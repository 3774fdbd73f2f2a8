import './names-lead-here.mts';

/**
 * Does what a program does that knows E2B_DOMAIN and E2B_API_KEY alone, with the package that the
 * first argument names.
 */
const { Sandbox } = await import(process.argv[2] ?? '');
const sandbox = await Sandbox.create();
const host = sandbox.getHost(3_000);
const link = await sandbox.uploadUrl('/home/user/a');
const form = new FormData();
form.append('file', new Blob(['by a link']), 'a');
const { status } = await fetch(link, { method: 'POST', body: form });
const runs = await sandbox.isRunning();
const read = await sandbox.files.read('/home/user/a');
await Sandbox.setTimeout(sandbox.sandboxId, 60_000);
const ended = [await Sandbox.kill(sandbox.sandboxId), await Sandbox.kill(sandbox.sandboxId)];
const after = await sandbox.isRunning();
console.log(JSON.stringify({ id: sandbox.sandboxId, host, status, runs, read, ended, after }));
