import { expect } from 'chai';
import type { LevelledLog } from '../../src/contracts/log.ts';
import { createLog } from '../../src/daemon/process/log.ts';
import { logLevels } from '../../src/services/debug/log-levels.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const CALLER = { namespace: 'n', team: 't', user: 'u', role: 'admin', keyId: 'k' } as const;

describe('the log level', () => {
  const aLevel = () => {
    const log: LevelledLog = { ...quietLog, level: 'info' };
    const clock = new TestClock();
    return { log, clock, ...logLevels({ log, clock, replica: 'r' }) };
  };

  it('comes from the settings at first', () => {
    expect(aLevel().getLogLevel(CALLER)).to.deep.equal({
      replica: 'r',
      level: 'info',
      configured: 'info',
      until: undefined,
    });
  });

  it('can be changed for a while, and then reverts', () => {
    const { log, clock, setLogLevel, getLogLevel } = aLevel();
    const until = clock.now() + 600_000;

    expect(setLogLevel(CALLER, { level: 'debug', forMs: 600_000 })).to.deep.equal({
      replica: 'r',
      level: 'debug',
      configured: 'info',
      until,
    });
    clock.advance(599_999);
    expect(log.level).to.equal('debug');
    clock.advance(1);
    expect([log.level, getLogLevel(CALLER).until]).to.deep.equal(['info', undefined]);
  });

  it('is announced once, in lines of their own level', () => {
    const lines: string[] = [];
    const clock = new TestClock();
    const { setLogLevel } = logLevels({
      log: createLog(
        'info',
        {},
        {
          write: (line) => {
            lines.push(line);
          },
        },
      ),
      clock,
      replica: 'r',
    });
    setLogLevel(CALLER, { level: 'debug', forMs: 1_000 });
    clock.advance(1_000);

    expect(lines.map((line) => line.match(/"level":/g)?.length)).to.deep.equal([1, 1]);
    expect(
      lines.map((line) =>
        line
          .replace(/^.*"from"/, '"from"')
          .replace(/,"until":"[^"]*"/, '')
          .trim(),
      ),
    ).to.deep.equal([
      '"from":"info","to":"debug","msg":"log level changed"}',
      '"from":"debug","to":"info","msg":"log level reset to the configured level"}',
    ]);
  });

  it('stays if no duration is given, even past the end of an earlier change', () => {
    const { log, clock, setLogLevel } = aLevel();
    setLogLevel(CALLER, { level: 'debug', forMs: 1_000 });
    setLogLevel(CALLER, { level: 'warn' });
    clock.advance(10_000);

    expect(log.level).to.equal('warn');
    expect(clock.waiting).to.equal(0);
  });
});
