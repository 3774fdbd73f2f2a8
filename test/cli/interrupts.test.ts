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

  it('insist by another one, which is no echo of the first', () => {
    comes('SIGQUIT', 0);
    comes('SIGQUIT', 1_000);
    expect(insisted).to.deep.equal([]);
    comes('SIGQUIT', 1_001);
    expect(insisted).to.deep.equal([131]);
  });

  it('do not insist by a hang-up, which comes once more as the session ends, be it late', () => {
    comes('SIGHUP', 0);
    comes('SIGHUP', 5_000);
    expect(insisted).to.deep.equal([]);
  });
});
