import { expect } from 'chai';
import { renderDefinition } from '../../src/model/pools/render-definition.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';

const document = (container: object, spec: object = {}): unknown => ({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name: 'web' },
  spec: {
    containers: [
      {
        name: 'main',
        image: 'host',
        ports: [{ name: 'http', containerPort: 8_000 }],
        ...container,
      },
    ],
    ...spec,
  },
});
const rendered = (container: object, spec: object = {}) =>
  renderDefinition(SandboxTemplateSchema.parse(document(container, spec)).spec);
const faults = (container: object, spec: object = {}): readonly string[] =>
  (SandboxTemplateSchema.safeParse(document(container, spec)).error?.issues ?? []).map(
    ({ path, message }) => `${path.join('.')}: ${message}`,
  );

describe('a readinessProbe', () => {
  it('has the defaults of Kubernetes', () => {
    expect(
      rendered({ readinessProbe: { httpGet: { port: 'http' } } }).containers[0]?.readinessProbe,
    ).to.deep.equal({
      action: { kind: 'http', port: 8_000, path: '/', secure: false, headers: [] },
      initialDelayMs: 0,
      periodMs: 10_000,
      timeoutMs: 1_000,
      successThreshold: 1,
      failureThreshold: 3,
    });
  });

  it('accepts every field', () => {
    expect(
      rendered({
        readinessProbe: {
          httpGet: {
            path: '/healthz?q',
            port: 9_000,
            scheme: 'HTTPS',
            httpHeaders: [{ name: 'A', value: 'b' }],
          },
          initialDelaySeconds: 1,
          periodSeconds: 2,
          timeoutSeconds: 3,
          successThreshold: 4,
          failureThreshold: 5,
        },
      }).containers[0]?.readinessProbe,
    ).to.deep.equal({
      action: {
        kind: 'http',
        port: 9_000,
        path: '/healthz?q',
        secure: true,
        headers: [['A', 'b']],
      },
      initialDelayMs: 1_000,
      periodMs: 2_000,
      timeoutMs: 3_000,
      successThreshold: 4,
      failureThreshold: 5,
    });
    expect(
      rendered({ readinessProbe: { exec: { command: ['true'] } } }).containers[0]?.readinessProbe
        ?.action,
    ).to.deep.equal({ kind: 'exec', argv: ['true'] });
    expect(
      rendered({ readinessProbe: { tcpSocket: { port: 1 } } }).containers[0]?.readinessProbe
        ?.action,
    ).to.deep.equal({ kind: 'tcp', port: 1 });
  });

  it("of an endpoint uses the endpoint's own port by default", () => {
    const { endpoints } = rendered(
      {},
      {
        endpoints: [
          { name: 'web', port: 'http', readinessProbe: { httpGet: {} } },
          { name: 'raw', port: 81, scheme: 'https', readinessProbe: { tcpSocket: { port: 82 } } },
        ],
      },
    );
    expect(endpoints?.['web']).to.deep.include({ port: 8_000, scheme: 'http' });
    expect(endpoints?.['web']?.readinessProbe?.action).to.deep.include({ port: 8_000 });
    expect(endpoints?.['raw']).to.deep.include({ port: 81, scheme: 'https' });
    expect(endpoints?.['raw']?.readinessProbe?.action).to.deep.equal({ kind: 'tcp', port: 82 });
  });

  it('has exactly one action, on the sandbox itself', () => {
    const one =
      'spec.containers.0.readinessProbe: must have exactly one of exec, httpGet, tcpSocket';
    expect(faults({ readinessProbe: {} })).to.deep.equal([one]);
    expect(
      faults({ readinessProbe: { tcpSocket: { port: 1 }, exec: { command: ['true'] } } }),
    ).to.deep.equal([one]);
    expect(
      faults({ readinessProbe: { httpGet: { port: 1, host: '169.254.169.254' } } })[0],
    ).to.match(/host/);
    expect(faults({ readinessProbe: { tcpSocket: { port: 1, host: 'elsewhere' } } })[0]).to.match(
      /host/,
    );
  });

  it('has values within bounds', () => {
    for (const [field, values] of Object.entries({
      initialDelaySeconds: [-1, 86_401],
      periodSeconds: [0, 86_401],
      timeoutSeconds: [0, 301],
      successThreshold: [0, 1_001],
      failureThreshold: [0, 1_001],
    })) {
      for (const value of values)
        expect(
          faults({ readinessProbe: { tcpSocket: { port: 1 }, [field]: value } })[0],
          `${field} ${value}`,
        ).to.match(new RegExp(`^spec\\.containers\\.0\\.readinessProbe\\.${field}`));
    }
    for (const port of [0, 65_536, 1.5, 'No Name', 'unknown'])
      expect(faults({ readinessProbe: { tcpSocket: { port } } }), String(port)).to.have.lengthOf(1);
    for (const path of ['no/slash', '/with space', '/with\nnewline', '/with\r\nHost: other'])
      expect(
        faults({ readinessProbe: { httpGet: { port: 1, path } } }),
        path,
      ).to.have.length.greaterThan(0);
    expect(
      faults({
        readinessProbe: { httpGet: { port: 1, httpHeaders: [{ name: 'A', value: 'b\r\nc: d' }] } },
      }),
    ).to.have.lengthOf(1);
    expect(faults({ readinessProbe: { httpGet: {} } })).to.deep.equal([
      'spec.containers.0.readinessProbe.httpGet.port: is required',
    ]);
  });

  it('cannot name an endpoint twice, or a missing port', () => {
    expect(
      faults(
        {},
        {
          endpoints: [
            { name: 'a', port: 1 },
            { name: 'a', port: 2 },
          ],
        },
      ),
    ).to.deep.equal(['spec.endpoints.1.name: is given twice']);
    expect(faults({}, { endpoints: [{ name: 'a', port: 'constructor' }] })[0]).to.match(
      /^spec\.endpoints\.0\.port: must be a port/,
    );
    expect(
      faults({
        ports: [
          { name: 'a', containerPort: 1 },
          { name: 'a', containerPort: 2 },
        ],
      }),
    ).to.deep.equal(['spec.containers.0.ports.1.name: is given twice']);
  });
});
