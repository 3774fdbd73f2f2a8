import { expect } from 'chai';
import { mock } from 'node:test';
import { catchInterrupts } from '../../src/cli/common/interrupts.ts';

describe('signals that end a command', () => {
  let now: number;
  let insisted: number[];
  let dispose: () => void;
  beforeEach(() => {
    now = 0;
    mock.method(performance, 'now', () => now);
    insisted = [];
    ({ dispose } = catchInterrupts((exitCode) => insisted.push(exitCode)));
  });
  afterEach(() => {
    dispose();
    mock.restoreAll();
  });
  const comes = (name: 'SIGHUP' | 'SIGQUIT', at: number): void => {
    now = at;
    process.emit(name, name);
  };

  it('insist when they are repeated, except for an echo of the first', () => {
    comes('SIGQUIT', 0);
    comes('SIGQUIT', 1_000);
    expect(insisted).to.deep.equal([]);
    comes('SIGQUIT', 1_001);
    expect(insisted).to.deep.equal([131]);
  });

  it('do not insist as a hang-up, which repeats when the session ends, even late', () => {
    comes('SIGHUP', 0);
    comes('SIGHUP', 5_000);
    expect(insisted).to.deep.equal([]);
  });
});
