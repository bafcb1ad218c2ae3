# One image for every process of a deployment: api, worker, dispatcher, migrate (see docker-compose.yml).

# The version of Python that the test suite runs on.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS builder
RUN python -m venv /opt/venv
COPY requirements.lock /tmp/requirements.lock
# Hashes: what was tested is what is installed. Wheels only: the slim image has no compiler.
RUN /opt/venv/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r /tmp/requirements.lock

FROM ${PYTHON_IMAGE}
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    RANKWRIGHT_KERNEL_CPU=x86-64-v3,x86-64-v2,aarch64 \
    RANKWRIGHT_KERNEL_CACHE=/opt/kernels:/var/lib/rankwright/kernels \
    RANKWRIGHT_STATE_DIR=/var/lib/rankwright

# A number, so that an orchestrator can see that it is not root. The volume that is mounted over the state folder
# takes its owner from here.
RUN groupadd --gid 10001 rankwright \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/rankwright --no-create-home --shell /usr/sbin/nologin rankwright \
    && install -d -o 10001 -g 10001 -m 0750 /var/lib/rankwright

COPY --from=builder /opt/venv /opt/venv
COPY LICENSE /app/LICENSE
COPY core /app/core
COPY app /app/app
COPY workers /app/workers
COPY --chmod=0755 docker/rankwright /usr/local/bin/rankwright
RUN python -m compileall -q /app

WORKDIR /var/lib/rankwright

# Every kernel is compiled here, once for each level of processors that RANKWRIGHT_KERNEL_CPU names, whatever this builder
# is. A container reads them; on a processor below all levels it compiles for itself, into the state folder.
RUN python -m workers.compile --every-level

USER 10001:10001

EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["rankwright", "--help"]
