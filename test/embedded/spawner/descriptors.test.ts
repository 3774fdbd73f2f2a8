import { expect } from 'chai';
import { printedWithFewDescriptors } from '../../support/harness/few-descriptors.ts';

/**
 * As many descriptors as may be open, but for so many; then the code, with `execution` and `watcher`.
 * Returns what it printed.
 */
const shortOf = (spare: number, code: string): string => {
  const path = (name: string): string =>
    JSON.stringify(new URL(`../../../src/embedded/spawner/${name}.ts`, import.meta.url).href);
  const program = `
    import { openSync, closeSync, readdirSync } from 'node:fs';
    import { LauncherPool } from ${path('launcher-pool')};
    import { Execution } from ${path('execution')};
    import { Watcher } from ${path('watcher')};
    const never = () => { throw new Error('an event came'); };
    const place = { init: { pid: 1, startTime: '1' }, cgroups: [], env: {}, workingDir: '/', bare: undefined };
    const execution = () => new Execution(new LauncherPool(() => '/bin/true'), { place, order: { argv: ['true'], timeoutMs: 1_000, outputLimit: 10 } }, { output: never, exited: never, failed: never });
    const watcher = async () => {
      // Its complaint makes room. What it starts is no launcher, and ends at once: that it was tried again is enough.
      let complaints = 0;
      const warn = () => { complaints += 1; for (const fd of held.splice(0, 20)) closeSync(fd); };
      const watcher = new Watcher('/bin/true', { info() {}, error() {}, warn });
      watcher.start();
      while (complaints < 2) await new Promise((resolve) => setTimeout(resolve, 10));
      watcher.stop();
      return 'tried again';
    };
    const held = [];
    const fill = () => { try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {} };
    fill();
    for (let at = 0; at < ${spare}; at += 1) closeSync(held.pop());
    const tried = async (make) => { try { const made = await make(); return typeof made === 'string' ? made : 'made'; } catch (error) { return error.message; } };
    ${code}
    const answer = await tried(make);
    const before = held.length;
    const back = () => { fill(); return held.length - before; };
    while (back() < ${spare}) await new Promise((resolve) => setTimeout(resolve, 10));
    console.log(JSON.stringify([answer, back()]));
  `;
  return printedWithFewDescriptors(200, program);
};

const REFUSED = 'no process can be started: too many descriptors are open';

describe('a spawner without free descriptors', function () {
  it('starts the watcher of processes once descriptors are free', () => {
    expect(shortOf(1, 'const make = watcher;')).to.match(/^\["tried again",/);
  });

  it('refuses a command, survives, and leaks no descriptor', () => {
    expect(shortOf(3, 'const make = execution;')).to.equal(JSON.stringify([REFUSED, 3]));
  });
});
