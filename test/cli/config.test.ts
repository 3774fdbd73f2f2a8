import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { cliHere } from './cli-support.ts';

describe('sandpool config', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-config-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const aFile = (text: string): string => {
    const file = join(folder, 'my.yaml');
    writeFileSync(file, text);
    return file;
  };

  it('print shows the merged flags, variables, file and defaults, each with its origin', async () => {
    const file = aFile('quotas: { pools: 7 }\n');
    const end = await cliHere(['config', 'print', '--config', file, '--listen', '127.0.0.1:1234'], {
      SANDPOOL_PIDS_MAX: '99',
    });
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    expect(parse(end.stdout)).to.deep.include({ listen: '127.0.0.1:1234', pidsMax: 99 });
    expect(end.stdout)
      .to.include(`  pools: 7 # ${file}\n`)
      .and.include('listen: 127.0.0.1:1234 # --listen\n')
      .and.include('pidsMax: 99 # SANDPOOL_PIDS_MAX\n');
  });

  it('print as JSON lists each setting', async () => {
    const { stdout } = await cliHere(['config', 'print', '-o', 'json']);
    expect(JSON.parse(stdout).settings).to.deep.include({
      name: 'clusterId',
      value: 'local',
      origin: 'default',
      variable: 'SANDPOOL_CLUSTER_ID',
      flag: '--cluster-id',
    });
  });

  it('check reports every fault of file and environment at once, and ends with 1', async () => {
    const file = aFile('pidsMax: lots\nlisten: "here"\n');
    const end = await cliHere(['config', 'check', file], { SANDPOOL_PARALEL_STARTS: '3' });
    expect([end.code, end.stdout]).to.deep.equal([1, '']);
    expect(end.stderr).to.equal(
      [
        'The configuration has 3 errors:',
        '  SANDPOOL_PARALEL_STARTS is not a setting; did you mean SANDPOOL_PARALLEL_STARTS? (the environment)',
        `  listen must be HOST:PORT, an IPv6 host in brackets, port 0 to 65535 (${file})`,
        `  pidsMax must be a whole number from 8 to 32768 (${file})`,
        '',
      ].join('\n'),
    );
  });

  it('check reports that all is well, and reads the file of SANDPOOL_CONFIG', async () => {
    const file = aFile('pidsMax: 64\n');
    expect(await cliHere(['config', 'check'], { SANDPOOL_CONFIG: file })).to.deep.include({
      code: 0,
      stderr: '',
    });
    expect((await cliHere(['config', 'check', file])).stdout).to.match(
      /^the configuration is valid: \d+ settings, 1 of them not the default\n$/,
    );
    expect((await cliHere(['config', 'check', join(folder, 'none.yaml')])).code).to.equal(1);
  });
});
