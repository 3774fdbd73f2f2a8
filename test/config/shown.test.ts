import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/daemon/config/config.ts';
import { configJson, configYaml, masked } from '../../src/daemon/config/shown.ts';

describe('the displayed configuration', () => {
  it('is a settings file with the same meaning', () => {
    const first = loadConfig({
      env: { SANDPOOL_TERMINAL_ALLOWED_ORIGINS: 'https://a.example,https://b.example' },
      argvOptions: { listen: '[::1]:0', namespacePattern: 't-{team}' },
    });
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-shown-'));
    const file = join(folder, 'again.yaml');
    writeFileSync(file, configYaml(first.given));

    const again = loadConfig({ env: {}, argvOptions: { config: file } });
    rmSync(folder, { recursive: true });

    expect(again.config).to.deep.equal(first.config);
  });

  it('shows the origin of each value', () => {
    const { given } = loadConfig({
      env: { SANDPOOL_PIDS_MAX: '64', SANDPOOL_TERMINAL_ALLOWED_ORIGINS: 'https://a.example' },
      argvOptions: { uidRangeFirst: '5000' },
    });

    expect(configYaml(given))
      .to.include('pidsMax: 64 # SANDPOOL_PIDS_MAX\n')
      .and.include('  first: 5000 # --uid-range-first\n')
      .and.include('parallelStarts: 4 # default\n')
      .and.include(
        '  # SANDPOOL_TERMINAL_ALLOWED_ORIGINS\n  allowedOrigins:\n    - https://a.example\n',
      );
    expect(JSON.parse(configJson(given)).settings).to.deep.include({
      name: 'pidsMax',
      value: 64,
      origin: 'SANDPOOL_PIDS_MAX',
      variable: 'SANDPOOL_PIDS_MAX',
      flag: '--pids-max',
    });
  });

  it('masks secrets, and passwords within addresses', () => {
    expect(masked({ secret: true }, 'hunter2')).to.equal('********');
    expect(masked({ secret: true }, ['hunter2'])).to.deep.equal(['********']);
    expect(masked({ secret: true }, undefined)).to.equal(undefined);
    expect(masked({ secret: false }, 'redis://user:hunter2@host:6379/0')).to.equal(
      'redis://user:********@host:6379/0',
    );
    expect(masked({ secret: false }, 'https://host:81/a@b')).to.equal('https://host:81/a@b');
    expect(masked({ secret: false }, 4)).to.equal(4);
  });
});
