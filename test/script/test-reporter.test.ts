import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KeptOutput } from '../../local-cluster/kept-output.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PRINTS = `for (let n = 1; n <= 30; n += 1) console.log('line ' + n + ' token=' + 'secret');`;
/** The clock of the wait goes on by a minute at each look. */
const TEXT = `
  import { spawn } from 'node:child_process';
  import { once } from 'node:events';
  import { createServer } from 'node:http';
  import { rememberChild } from '${join(ROOT, 'local-cluster/started-processes.ts')}';
  import { eventually } from '${join(ROOT, 'local-cluster/eventually.ts')}';
  import { HttpClient } from '${join(ROOT, 'test/support/harness/http-client.ts')}';

  const start = (name, text) => {
    const child = spawn(process.execPath, ['-e', text], { stdio: ['ignore', 'pipe', 'pipe'] });
    rememberChild(name, child);
    return child;
  };
  let shared;
  before(async () => {
    shared = start('shared', "console.log('I crash'); setInterval(() => {}, 1_000)");
    await once(shared.stdout, 'data');
  });
  it('a', async () => {
    shared.kill('SIGKILL');
    await once(shared, 'close');
    await once(start('of another test', "console.log('forgotten')"), 'close');
  });
  it('b', async () => {
    await once(start('talker', ${JSON.stringify(`${PRINTS} process.exitCode = 3;`)}), 'close');
    const server = createServer((request, response) => response.writeHead(418).end('short and stout'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const client = new HttpClient(server.address().port, undefined, { isDocumented: false });
    await client.get('/teapot');
    client.close();
    server.close();
    let minutes = 0;
    performance.now = () => (minutes += 1) * 60_000;
    await eventually(() => false, 'the moon', () => ({ phase: 'new' }));
  });`;

describe('the report of a failed test', function () {
  let output: string;

  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-reporter-'));
    const file = join(folder, 'a.test.ts');
    writeFileSync(file, TEXT);
    const child = spawn(
      process.execPath,
      ['node_modules/mocha/bin/mocha.js', '--reporter', 'script/test-reporter.ts', file],
      { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const printed = KeptOutput.of(2 ** 20, child.stdout, child.stderr);
    await once(child, 'close');
    output = printed.text;
    rmSync(folder, { recursive: true });
  });

  it('begins with what it waited for and what it saw', () => {
    expect(output).to.include("waited for: the moon; saw: { phase: 'new' } (");
  });

  it('has the last twenty lines of each process that it started, without tokens', () => {
    const lines = Array.from({ length: 20 }, (_, n) => ` {10}line ${n + 11} token=…\n`).join('');
    expect(output).to.match(new RegExp(`talker \\(pid \\d+, exit code 3\\):\n${lines} *\\D`));
    expect(output).not.to.include('secret').and.not.to.include('line 10 ');
  });

  it('has the lines of a shared process that died in an earlier test, and of no other', () => {
    expect(output).to.match(/shared \(pid \d+, killed by SIGKILL\):\n {10}I crash\n/);
    expect(output).not.to.include('forgotten');
  });

  it('has the last answer of each client', () => {
    expect(output).to.match(/ {8}GET \/teapot on port \d+: 418 short and stout\n/);
  });
});
