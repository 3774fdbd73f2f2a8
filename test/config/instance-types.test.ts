import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readInstanceTypes } from '../../src/daemon/config/instance-types.ts';

const SHIPPED = new URL('../../config/instance-types.yaml', import.meta.url).pathname;

describe('the file of instance types', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-types-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const read = (text: string) => {
    writeFileSync(join(folder, 'types.yaml'), text);
    return readInstanceTypes(join(folder, 'types.yaml'));
  };

  const faultsOf = (text: string): readonly string[] => {
    try {
      read(text);
    } catch (error) {
      return (error instanceof Error ? error.message : '')
        .split('\n')
        .map((line) => line.replace(`${join(folder, 'types.yaml')}: `, ''));
    }
    throw new Error('it was taken');
  };

  it('is shipped and valid', () => {
    expect(readInstanceTypes(SHIPPED)[0]).to.deep.equal({
      name: 'small',
      showName: 'Small',
      description: 'Half a cpu and 256 MiB, for scripts and tests.',
      baseResources: {
        requests: { cpu: '250m', memory: '256Mi' },
        limits: { cpu: '500m', memory: '256Mi' },
      },
      maxMultiplier: 4,
      extensions: {},
    });
  });

  it('derives missing requests from the limits', () => {
    expect(
      read(
        'instanceTypes: [{ name: one, baseResources: { requests: { cpu: 0.5 }, limits: { cpu: 2, memory: 1Gi } } }]',
      ),
    ).to.deep.equal([
      {
        name: 'one',
        showName: 'one',
        description: '',
        maxMultiplier: 1,
        extensions: {},
        baseResources: {
          requests: { cpu: '0.5', memory: '1Gi' },
          limits: { cpu: '2', memory: '1Gi' },
        },
      },
    ]);
  });

  it('is refused with all its faults, by field', () => {
    expect(
      faultsOf(`instanceTypes:
  - { name: One, baseResources: { limits: { cpu: 2, memory: 1Gi } } }
  - { name: two, size: 3, baseResources: { limits: { cpu: much } }, maxMultiplier: 0 }`),
    ).to.deep.equal([
      'errors in the instance types:',
      'instanceTypes[0].name: must be a DNS-1123 label: 1 to 63 of a-z, 0-9 and inner hyphens',
      'instanceTypes[1].baseResources.limits.cpu: must be a quantity above 0, such as 500m or 2Gi',
      'instanceTypes[1].baseResources.limits: must have cpu and memory',
      'instanceTypes[1].maxMultiplier: must be at least 1',
      'instanceTypes[1]: Unrecognized key: "size"',
    ]);
  });

  it('refuses a duplicate name, a type without memory, and anything but a list', () => {
    const twice = '{ name: one, baseResources: { limits: { cpu: 1, memory: 1Gi } } }';

    expect(faultsOf(`instanceTypes: [${twice}, ${twice}]`)[1]).to.equal(
      'instanceTypes: must not repeat a name',
    );
    expect(
      faultsOf('instanceTypes: [{ name: one, baseResources: { limits: { cpu: 1 } } }]')[1],
    ).to.equal('instanceTypes[0].baseResources.limits: must have cpu and memory');
    expect(faultsOf('[]')[1]).to.contain('expected object');
  });

  it('is named if it is missing or malformed', () => {
    expect(() => readInstanceTypes(join(folder, 'none.yaml'))).to.throw(
      `can't read instance types from ${join(folder, 'none.yaml')}`,
    );
    expect(faultsOf('a: [')[0]).to.match(/types.yaml is not YAML: /);
  });
});
