import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../src/daemon/config/config.ts';
import { openConsole } from '../../src/daemon/assembly/console.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const ADDRESS = 'http://0.0.0.0:8080';

describe('the link of a first start', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'first-link-'));
    mkdirSync(join(folder, 'keys'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const linkOf = async (): Promise<string | undefined> => {
    const clock = new TestClock();
    const console = openConsole(
      loadConfig({ env: { HOME: folder, SANDPOOL_DATA_DIR: folder } }).config,
      {
        parts: { clock, coordination: aCoordination(clock), pepper: Buffer.alloc(32) },
        log: quietLog,
        audit: undefined,
        addressOf: () => ADDRESS,
      },
    );
    return await console?.ownersLinkAt(ADDRESS);
  };

  it('is for this machine only', async () => {
    expect(await linkOf()).to.match(/^http:\/\/localhost:8080\/console\/link\?token=[\w-]{43}$/);
  });

  it('is missing if operators exist before the first start, or cannot be read', async () => {
    const file = join(folder, 'keys', 'operators.json');
    const ada = { name: 'ada', role: 'operator', passwordHash: '$argon2id$x' };
    writeFileSync(file, JSON.stringify({ operators: [ada] }));
    expect(await linkOf()).to.equal(undefined);
    writeFileSync(file, '{');
    expect(await linkOf()).to.equal(undefined);
  });
});
