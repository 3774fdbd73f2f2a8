import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { clockAheadMs, keptClock } from '../../../src/embedded/store/clock-file.ts';
import { machineTime, type MachineTime } from '../../../src/embedded/system-clock.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
const START = 1_700_000_000_000;
const NOW = 1_790_000_000_000;

describe('the clock over restarts', () => {
  let folder: string;
  let file: string;
  let machine: MachineTime;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-clock-'));
    file = join(folder, 'clock.json');
    machine = { wall: START, uptimeMs: 10_000, bootId: 'first' };
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const warnings: string[] = [];
  /**
   * One life of a daemon: the time at its start. It ends as it is, or by `kill` without a last
   * word.
   */
  const life = (end: 'stop' | 'kill' = 'stop'): number => {
    warnings.length = 0;
    const { clock, stop } = keptClock(
      file,
      {
        ...quietLog,
        warn: (_, text) => {
          warnings.push(text ?? '');
        },
      },
      () => machine,
    );
    const now = clock.now();
    if (end === 'stop') stop();
    return now;
  };
  /** Within what a busy machine takes meanwhile; tests tell moments apart that are hours apart. */
  const about = (value: number, wanted: number): void => {
    expect(value - wanted).to.be.within(-50, 60_000);
  };

  it("starts at the machine's clock", () => {
    about(life(), START);
    expect(warnings).to.deep.equal([]);
  });

  for (const end of ['stop', 'kill'] as const) {
    it(`continues by the uptime if the machine's clock was changed in the meantime (${end})`, () => {
      life(end);
      machine = { wall: START + YEAR_MS, uptimeMs: 10_000 + HOUR_MS, bootId: 'first' };
      about(life(end), START + HOUR_MS);
      expect(warnings).to.have.lengthOf(1);
      machine = { wall: START - YEAR_MS, uptimeMs: 10_000 + 2 * HOUR_MS, bootId: 'first' };
      about(life(end), START + 2 * HOUR_MS);
    });
  }

  it("follows the machine's clock after a reboot, but never goes back", () => {
    life();
    machine = { wall: START + HOUR_MS, uptimeMs: 500, bootId: 'second' };
    about(life(), START + HOUR_MS);
    machine = { wall: START, uptimeMs: 700, bootId: 'third' };
    about(life(), START + HOUR_MS);
    expect(warnings).to.have.lengthOf(1);
  });

  it("is right from the next start on if the machine's clock was older than Sandpool", () => {
    machine = { wall: 3_000, uptimeMs: 3_000, bootId: 'first' };
    life();
    machine = { wall: NOW, uptimeMs: HOUR_MS, bootId: 'first' };
    about(life(), NOW);
    expect(warnings).to.deep.equal([]);
  });

  it('reports its lead at runtime and without a daemon', () => {
    const { stop, aheadMs } = keptClock(file, quietLog, () => machine);
    expect(aheadMs()).to.be.within(-50, 60_000);
    machine = { ...machine, wall: START - YEAR_MS };
    about(aheadMs(), YEAR_MS);
    stop();
    expect(clockAheadMs(file, { ...machine, wall: START + YEAR_MS })).to.be.within(
      -YEAR_MS - 50,
      -YEAR_MS + 60_000,
    );
    expect(clockAheadMs(join(folder, 'none'), machine)).to.equal(0);
  });

  it('starts again if its file is unreadable', () => {
    for (const text of [
      '',
      '{',
      'null',
      '{"bootId":"first","uptimeMs":-1,"at":5}',
      '{"bootId":"first","at":"x","uptimeMs":1}',
    ]) {
      writeFileSync(file, text);
      about(life(), START);
    }
    expect(JSON.parse(readFileSync(file, 'utf8'))).to.have.keys('bootId', 'uptimeMs', 'at');
  });

  it("equals the machine's clock if nothing was changed", () => {
    machine = machineTime();
    life();
    const from = Date.now();
    machine = machineTime();
    about(life(), from);
    expect(warnings).to.deep.equal([]);
  });
});
