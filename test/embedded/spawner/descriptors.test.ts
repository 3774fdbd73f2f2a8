import { expect } from 'chai';
import { spawnSync } from 'node:child_process';

/** As many descriptors as may be open, but for so many; then the code, with `pty` and `execution`. Answers what it printed. */
const shortOf = (spare: number, code: string): string => {
  const path = (name: string): string => JSON.stringify(new URL(`../../../src/embedded/spawner/${name}.ts`, import.meta.url).href);
  const program = `
    import { openSync, closeSync, readdirSync } from 'node:fs';
    import { Pty } from ${path('pty')};
    import { Execution } from ${path('execution')};
    const never = () => { throw new Error('an event came'); };
    const pty = () => new Pty({ file: '/bin/true', args: [], order: Buffer.alloc(0), cols: 80, rows: 24 }, { output() {}, taken() {}, exited() {} });
    const place = { init: { pid: 1, startTime: '1' }, cgroups: [], env: {}, workingDir: '/', bare: undefined };
    const execution = () => new Execution('/bin/true', place, { argv: ['true'], timeoutMs: 1_000, outputLimit: 10 }, { output: never, exited: never, failed: never });
    await new Promise((resolve) => pty().constructor && setTimeout(resolve, 300)); // what is loaded late is loaded
    const held = [];
    const fill = () => { try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {} };
    fill();
    for (let at = 0; at < ${spare}; at += 1) closeSync(held.pop());
    const tried = (make) => { try { make(); return 'made'; } catch (error) { return error.message; } };
    ${code}
    const answer = tried(make);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = held.length;
    fill();
    console.log(JSON.stringify([answer, held.length - before]));
  `;
  const done = spawnSync('/bin/bash', ['-c', 'ulimit -n 200; exec "$0" "$@"', process.execPath, '--import', 'tsx', '--input-type=module', '-e', program], { encoding: 'utf8', timeout: 30_000 });
  return done.stdout.trim() || done.stderr;
};

const REFUSED = 'no process can be started: too many descriptors are open';

describe('a spawner whose descriptors are all in use', function () {
  this.timeout(60_000);

  it('refuses a terminal, lives on, and keeps no descriptor of it', () => {
    expect(shortOf(3, 'const make = pty;')).to.equal(JSON.stringify([REFUSED, 3]));
  });

  it('refuses a command, lives on, and keeps no descriptor of it', () => {
    expect(shortOf(3, 'const make = execution;')).to.equal(JSON.stringify([REFUSED, 3]));
  });
});
